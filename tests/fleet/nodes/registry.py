"""A registry of images: what `docker pull` asks for, from a folder. Standard library only.

Usage: registry.py FOLDER HOST PORT. FOLDER/blobs/DIGEST, FOLDER/manifests/NAME/DIGEST.
"""

import hashlib
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

MANIFEST_TYPE = "application/vnd.docker.distribution.manifest.v2+json"


def publish(folder: Path, place: str, content: bytes) -> str:
    """Put content where a registry looks for it; returns its digest."""
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    path = folder / place / digest
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return digest


class Registry(BaseHTTPRequestHandler):
    """Answers GET and HEAD below /v2/."""

    folder = Path()

    def do_GET(self) -> None:
        """Answer with a manifest or a blob."""
        self._answer(body=True)

    def do_HEAD(self) -> None:
        """Answer without a body."""
        self._answer(body=False)

    def _answer(self, body: bool) -> None:
        words = self.path.removeprefix("/v2/").strip("/").split("/")
        if words == [""]:
            return self._send(b"{}", "application/json", "", body)
        *name, kind, digest = words
        path = self.folder.joinpath("blobs", digest)
        if kind == "manifests":
            path = self.folder.joinpath("manifests", *name, digest)
        if not path.is_file():
            unknown = b'{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}'
            return self._send(unknown, "application/json", "", body, 404)
        types = {"manifests": MANIFEST_TYPE, "blobs": "application/octet-stream"}
        return self._send(path.read_bytes(), types[kind], digest, body)

    def _send(self, content: bytes, kind: str, digest: str, body: bool, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        if digest:
            self.send_header("Docker-Content-Digest", digest)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the console is the tests'."""


if __name__ == "__main__":
    Registry.folder = Path(sys.argv[1])
    ThreadingHTTPServer((sys.argv[2], int(sys.argv[3])), Registry).serve_forever()
