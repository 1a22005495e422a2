"""One file over HTTP into the cache: resumed where it stopped, refused when it is not the one."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from tetraspark.errors import Problem, RunError
from tetraspark.images.cache import Cache
from tetraspark.images.manifest import Archive, Wheel
from tetraspark.images.mirror import shown
from tetraspark.images.tree import CHUNK

TRIES = 4
"""A connection that ends early is taken up again so often."""
LARGEST_UNSTATED = 2 << 30
"""Bytes; where the source states no size, more than this is not what was asked for."""
MOVED = "the source has moved: --mirror or --from, or a newer pin"
BROKEN = "the server's answer is broken: --mirror or --from"
CUT_OFF = ("peer closed connection", "Server disconnected")
"""How httpx begins to say that a connection ended; its other protocol errors stay."""
ARRIVED = Callable[[int], None]
"""Told how many bytes of the file are here."""


class EndedEarlyError(Exception):
    """The body was cut off; the next try goes on from there."""


@dataclass(frozen=True)
class Download:
    """One file from one URL, which may be a mirror's."""

    client: httpx.Client
    row: Archive | Wheel
    url: str
    cache: Cache
    arrived: ARRIVED

    def run(self) -> Path:
        """Bring the file into the cache and return where it is.

        Raises RunError with what was seen and wanted. Bytes of a cut-off body stay beside the
        cache's files, under a name nobody reads but the next try; wrong bytes are deleted.
        """
        reason = ""
        for _ in range(TRIES):
            try:
                resumed = self._part.exists()
                sha256 = self._stream()
            except (httpx.TooManyRedirects, httpx.InvalidURL, UnicodeError) as error:
                seen = f"a redirect that leads nowhere: {type(error).__name__}"
                raise self._refused(seen, "the file", BROKEN) from error
            except (httpx.TransportError, EndedEarlyError) as error:
                reason = self._reason(error)
                continue
            if sha256 == self.row.sha256:
                return self.cache.keep(self._part, sha256)
            self._part.unlink()
            # What was there before may have been of other bytes: once more, from the start.
            if not resumed:
                raise self._refused(f"sha256 {sha256}", f"sha256 {self.row.sha256}")
        have = self._part.stat().st_size if self._part.exists() else 0
        fix = "the same command goes on from there; behind a firewall: --mirror or --from"
        raise RunError(
            Problem(self._where, f"{reason} ({have} bytes are here)", "the whole file", fix)
        )

    @property
    def _part(self) -> Path:
        return self.cache.folder / f"{self.row.sha256}.part"

    @property
    def _where(self) -> str:
        return f"{self.row.component} from {shown(self.url)}"

    def _reason(self, error: Exception) -> str:
        """Say why a connection ended; raises RunError where the next would end as this one."""
        protocol = isinstance(error, (httpx.ProtocolError, httpx.UnsupportedProtocol))
        if protocol and not str(error).startswith(CUT_OFF):
            seen = f"an answer that is not HTTP: {type(error).__name__}"
            raise self._refused(seen, "the file", BROKEN) from error
        reason = str(error) or type(error).__name__
        if isinstance(error, httpx.TransportError):
            host = error.request.url.host
            return reason if host == urlsplit(self.url).hostname else f"{reason} at {host}"
        return reason

    def _stream(self) -> str:
        """Append what is missing to the part; return the sha256 (hex) of all of it."""
        have = self._part.stat().st_size if self._part.exists() else 0
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        with self.client.stream("GET", self.url, headers=headers) as answer:
            if answer.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
                self._part.unlink(missing_ok=True)
                if not have:
                    raise self._refused("HTTP 416 to a request of all", "the file", BROKEN)
                raise EndedEarlyError("the server cannot go on from where the part ends")
            self._check_answer(answer)
            start = have if _goes_on(answer, have) else 0
            self._check_size(start, answer)
            return self._write(answer, start)

    def _check_answer(self, answer: httpx.Response) -> None:
        last = shown(str(answer.url))
        came_from = "" if last == shown(self.url) else f" at {last}"
        if not answer.is_success:
            # The standard's phrase: the server's own may be anything.
            phrase = httpx.codes.get_reason_phrase(answer.status_code)
            seen = f"HTTP {answer.status_code} {phrase}{came_from}"
            fix = "try again later" if answer.is_server_error else MOVED
            if answer.status_code == httpx.codes.UNAUTHORIZED:
                fix = f"~/.netrc: machine {answer.url.host} login NAME password WORD"
            raise self._refused(seen, "the file", fix)
        if "html" in answer.headers.get("Content-Type", ""):
            seen = f"an HTML page{came_from}: a login page or an error page"
            raise self._refused(seen, "the file", "open the URL in a browser; or use --from")

    def _check_size(self, start: int, answer: httpx.Response) -> None:
        length = answer.headers.get("Content-Length")
        if length is None or self.row.size is None or not length.isdigit():
            return
        if start + int(length) != self.row.size:
            self._part.unlink(missing_ok=True)
            raise self._refused(f"{start + int(length)} bytes", f"{self.row.size} bytes")

    def _write(self, answer: httpx.Response, start: int) -> str:
        digest, limit = hashlib.sha256(), self.row.size or LARGEST_UNSTATED
        with self._part.open("r+b" if start else "wb") as file:
            for block in iter(lambda: file.read(CHUNK) if start else b"", b""):
                digest.update(block)
            have = start
            for block in answer.iter_raw():
                have += len(block)
                if have > limit:
                    break
                file.write(block)
                file.flush()  # What arrived before a cut or a kill is there for the next try.
                digest.update(block)
                self.arrived(have)
        if have > limit:
            self._part.unlink()
            raise self._refused(f"more than {limit} bytes", f"{limit} bytes at most")
        if self.row.size is not None and have < self.row.size:
            raise EndedEarlyError(f"the body ended after {have} of {self.row.size} bytes")
        return digest.hexdigest()

    def _refused(self, seen: str, wanted: str, fix: str = "") -> RunError:
        fix = fix or "do not use it: somebody changed it, or the mirror is not one; --from FILE"
        return RunError(Problem(self._where, seen, wanted, fix))


def _goes_on(answer: httpx.Response, have: int) -> bool:
    """Say whether an answer is the rest of a file from byte `have`, and not the whole."""
    if answer.status_code != httpx.codes.PARTIAL_CONTENT:
        return False
    return str(answer.headers.get("Content-Range", "")).startswith(f"bytes {have}-")
