"""A stand-in for the engine of one rank: says what its log would, answers what its API would.

Usage: stand_in_engine.py PORT SERVER_INFO. It ends when its group is told to.
"""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

ANSWER = {
    "choices": [{"message": {"content": "42"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1},
}
RECEIPT = {"tetraspark": "engine", "pid": os.getpid(), "rank": 0, "world": 1, "engine": "0.5.23"}


def handler(info: str) -> type[BaseHTTPRequestHandler]:
    """Return a handler that tells `info` on /server_info."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer(info if self.path == "/server_info" else "{}")

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.answer(json.dumps(ANSWER))

        def answer(self, body: str) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None: ...

    return Handler


def main(port: str, info: str) -> None:
    """Serve until ended."""
    server = HTTPServer(("127.0.0.1", int(port)), handler(Path(info).read_text()))
    for line in ("Load weight begin", "Load weight end", "Uvicorn running on", json.dumps(RECEIPT)):
        print(line, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
