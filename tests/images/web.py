"""A web server with the faults of real ones, in a thread of the test."""

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Page:
    """What a path answers.

    `cut` holds, for each of the next answers, after how many bytes of the body the connection
    ends; `pause` seconds pass after each piece of 1000 bytes.
    """

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: list[int] = field(default_factory=list)
    pause: float = 0.0
    ranges: bool = True
    length: bool = True


class Server(ThreadingHTTPServer):
    """Silent about clients that hang up."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing."""


class Web:
    """The server; `pages` by path, `seen` the requests so far as (path, Range header)."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self.seen: list[tuple[str, str | None]] = []
        self._server = Server(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def url(self) -> str:
        """Base URL, for `--mirror`."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def serve(self, url: str, page: Page) -> Page:
        """Answer a request for a manifest's URL with a page, as a mirror would."""
        self.pages[url.removeprefix("https:/")] = page
        return page

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self) -> Callable[..., BaseHTTPRequestHandler]:
        web = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                wanted = self.headers.get("Range")
                web.seen.append((self.path, wanted))
                page = web.pages.get(self.path, Page(b"no such page", 404))
                self._answer(page, wanted)

            def _answer(self, page: Page, wanted: str | None) -> None:
                status, body, headers = page.status, page.body, dict(page.headers)
                part = re.fullmatch(r"bytes=(\d+)-(\d*)", wanted or "")
                if part and page.ranges and status == 200:
                    start, end = int(part[1]), min(int(part[2] or len(body)) + 1, len(body))
                    status = 206 if start < len(body) else 416
                    headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(body)}"
                    body = body[start:end]
                self.send_response(status)
                if page.length:
                    headers["Content-Length"] = str(len(body))
                else:
                    self.close_connection = True
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self._send(page, body)

            def _send(self, page: Page, body: bytes) -> None:
                end = page.cut.pop(0) if page.cut else len(body)
                for at in range(0, end, 1000):
                    self.wfile.write(body[at : min(at + 1000, end)])
                    self.wfile.flush()
                    time.sleep(page.pause)
                if end < len(body):
                    self.close_connection = True

            def log_message(self, *words: Any) -> None:
                pass

        return Handler
