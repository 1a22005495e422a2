"""The head of a request: read in bounded size and time, and held to the form that HTTP gives it."""

import re
import socket
import time
from http import HTTPStatus

SHOWN = 80
"""Characters of a line that a refusal repeats."""
_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_FIRST = re.compile(rb"[^\s\0]+ [^\s\0]+ HTTP/[1-9]\.[0-9]")
_FIELD = re.compile(_TOKEN + rb":[^\0\r\n]*")


class HeadRefused(Exception):
    """A request whose head does not come, is too large, or cannot be read; `reason` says why."""

    def __init__(self, status: HTTPStatus, reason: str | None = None) -> None:
        super().__init__(reason or status.phrase)
        self.status = status
        self.reason = reason


def read_head(connection: socket.socket, seconds: float, limit: int) -> bytes:
    """Return a request up to its empty line. Raises HeadRefused, and OSError of the socket.

    The time is for all of it: a client that sends a byte now and then gains nothing.
    """
    deadline = time.monotonic() + seconds
    found = b""
    while b"\r\n\r\n" not in found:
        if len(found) >= limit:
            raise HeadRefused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        left = deadline - time.monotonic()
        if left <= 0:
            raise HeadRefused(HTTPStatus.REQUEST_TIMEOUT)
        connection.settimeout(left)
        try:
            more = connection.recv(limit - len(found))
        except TimeoutError as error:
            raise HeadRefused(HTTPStatus.REQUEST_TIMEOUT) from error
        if not more:
            raise ConnectionAbortedError("the client left")
        found += more
    return found


def require_readable(head: bytes) -> None:
    """Hold a head to the form of RFC 9112. Raises HeadRefused with the line that has another.

    The library passes over a line that it cannot read, and all lines behind it.
    """
    first, *fields = head.partition(b"\r\n\r\n")[0].split(b"\r\n")
    if _FIRST.fullmatch(first) is None:
        raise _unreadable("the first line", first, "GET /metrics HTTP/1.1")
    for line in fields:
        if _FIELD.fullmatch(line) is None:
            raise _unreadable("a header line", line, "Name: value")


def _unreadable(what: str, line: bytes, wanted: str) -> HeadRefused:
    seen = ascii(line.decode("latin-1")[:SHOWN])
    reason = f"{what} cannot be read: {seen}; wanted: one like '{wanted}'"
    return HeadRefused(HTTPStatus.BAD_REQUEST, reason)
