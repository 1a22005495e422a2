"""One request of the status server: GET or HEAD of a known path, in bounded size and time."""

from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from io import BytesIO
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from prometheus_client.exposition import choose_encoder

from tetraspark.watch.http_head import SHOWN, HeadRefused, read_head, require_readable
from tetraspark.watch.http_place import is_loopback
from tetraspark.watch.page.render import policy, render_page
from tetraspark.watch.page.state_json import state_json

if TYPE_CHECKING:
    from tetraspark.watch.http import Server

HEAD_BYTES = 8192
SECONDS = 5.0
"""For the whole head of a request to come, and for the whole answer to go."""
METHODS = ("GET", "HEAD")
TEXT = "text/plain; charset=utf-8"
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
Content = tuple[HTTPStatus, str, bytes]
"""Status, content type and body."""


class Handler(BaseHTTPRequestHandler):
    """Answers one request a connection, and never reads a file."""

    server: "Server"
    server_version = "tetraspark"
    sys_version = ""
    # That of a request which cannot be read; 0.9 would have neither status nor headers.
    default_request_version = "HTTP/1.0"

    def handle(self) -> None:
        """Read the head in one piece with a deadline, then let the library take it apart."""
        try:
            head = read_head(self.connection, SECONDS, HEAD_BYTES)
            require_readable(head)
        except HeadRefused as refused:
            self.requestline = self.command = ""
            self.request_version = self.default_request_version
            self.connection.settimeout(SECONDS)
            self.send_error(refused.status, refused.reason)
            return
        self.rfile = BytesIO(head)
        # From here on the time is for the whole of what is sent.
        self.connection.settimeout(SECONDS)
        self.handle_one_request()

    def do_GET(self) -> None:
        """Answer."""
        if (refusal := self._refusal()) is not None:
            self.send_error(*refusal)
            return
        try:
            url = urlsplit(self.path)
        except ValueError as error:
            seen = ascii(self.path[:SHOWN])
            self.send_error(HTTPStatus.BAD_REQUEST, f"{seen} is no address: {error}")
            return
        make = CONTENTS.get(url.path)
        if make is None:
            self.send_error(HTTPStatus.NOT_FOUND, f"there is {', '.join(CONTENTS)}")
            return
        try:
            found = make(self)
        except Exception:
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR)
            raise
        self._send(*found)

    do_HEAD = do_GET

    def _refusal(self) -> tuple[HTTPStatus, str] | None:
        """Return why a request is refused: a body, or a page elsewhere that had its name moved."""
        lengths = self.headers.get_all("Content-Length", ())
        if any(length != "0" for length in lengths) or "Transfer-Encoding" in self.headers:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "a request here has no body"
        hosts = self.headers.get_all("Host", ("",))
        if len(hosts) > 1:
            return HTTPStatus.BAD_REQUEST, f"{len(hosts)} Host headers; wanted: one Host"
        name = _hostname(hosts[0])
        if self.server.loopback and not is_loopback(name):
            return HTTPStatus.MISDIRECTED_REQUEST, "ask for 127.0.0.1 or localhost"
        return None

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer with one line of text; a method that is none of ours with 405."""
        status = HTTPStatus(code)
        if status is HTTPStatus.NOT_IMPLEMENTED:
            status, message = HTTPStatus.METHOD_NOT_ALLOWED, f"only {' and '.join(METHODS)}"
        reason = message or status.phrase
        self._send(status, TEXT, f"{status.value} {reason}\n".encode(errors="replace"))

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", f"{policy()}; frame-ancestors 'none'")
        for name, value in HEADERS.items():
            self.send_header(name, value)
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", ", ".join(METHODS))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: requests come every few seconds."""

    def page(self) -> Content:
        """Return the page."""
        body = render_page(self.server.shown).encode()
        return HTTPStatus.OK, "text/html; charset=utf-8", body

    def state(self) -> Content:
        """Return the observation; with `?page` the parts of the page too."""
        with_page = urlsplit(self.path).query == "page"
        body = state_json(self.server.shown, with_page=with_page)
        return HTTPStatus.OK, "application/json", body

    def metrics(self) -> Content:
        """Return the metrics in the format that the client asks for, or else in the plain one."""
        try:
            encode, kind = choose_encoder(self.headers.get("Accept", ""))
        except TypeError:  # What it raises for a version that is none.
            encode, kind = choose_encoder("")
        return HTTPStatus.OK, kind, encode(self.server.registry)

    def healthz(self) -> Content:
        """Return 200 while the line answers requests, else 503 and why not."""
        health = self.server.shown.health
        status = HTTPStatus.OK if health.ok else HTTPStatus.SERVICE_UNAVAILABLE
        return status, TEXT, f"{health.reason}\n".encode(errors="replace")


CONTENTS: dict[str, Callable[[Handler], Content]] = {
    "/": Handler.page,
    "/state.json": Handler.state,
    "/metrics": Handler.metrics,
    "/healthz": Handler.healthz,
}


def _hostname(header: str) -> str:
    """Return the host of a Host header, without its port."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]
