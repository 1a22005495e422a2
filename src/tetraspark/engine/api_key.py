"""The API key, taken from a file.

The engine's own `--api-key` puts the key into argv, into the log's `server_args` line and into
`/server_info`. Here only the file's path travels.
"""

import os
import secrets
from pathlib import Path
from typing import Any

import httpx

from tetraspark.engine import receipts
from tetraspark.engine.guard_server import name_efforts

KEY_FILE = "TETRASPARK_API_KEY_FILE"


def read_key() -> str | None:
    """Return the key of the file named in the environment, or None when none is named.

    Raises SystemExit when the file is gone or empty: the server must not start unguarded.
    """
    path = os.environ.get(KEY_FILE)
    if path is None:
        return None
    try:
        key = Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SystemExit(f"tetraspark: API key file {path}: {error.strerror}") from error
    if not key:
        raise SystemExit(f"tetraspark: API key file {path} is empty")
    return key


class KeyGate:
    """ASGI middleware around the engine's own, which lets sockets through without a key, fails on
    a key that is not ASCII, and of several headers reads the first.
    """

    def __init__(self, app: Any, key: str) -> None:
        self._app = app
        self._key = key.encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Close a socket that opens without the key; answer 401 to a header that is no text, and
        to more than one.
        """
        given = [value for name, value in scope.get("headers", ()) if name == b"authorization"]
        if scope["type"] == "websocket" and not self._opens(given):
            await send({"type": "websocket.close", "code": 1008, "reason": "Unauthorized"})
        elif scope["type"] == "http" and not (len(given) < 2 and b"".join(given).isascii()):
            await _unauthorized(send)
        else:
            await self._app(scope, receive, send)

    def _opens(self, headers: list[bytes]) -> bool:
        if len(headers) != 1:
            return False
        scheme, _, key = headers[0].partition(b" ")
        return scheme.lower() == b"bearer" and secrets.compare_digest(key, self._key)


async def _unauthorized(send: Any) -> None:
    body = b'{"error":"Unauthorized"}'
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def before_http_server(*args: Any, **kwargs: Any) -> None:
    """BEFORE `_setup_and_run_http_server`: guard every endpoint but health and metrics with the
    key, sockets too; and have refusals of a reasoning effort name the tiers.
    """
    from sglang.srt.entrypoints.http_server import app
    from sglang.srt.utils.auth import add_api_key_middleware

    key = read_key()
    if key:
        add_api_key_middleware(app, api_key=key, admin_api_key=None)
        app.add_middleware(KeyGate, key=key)
    receipts.emit("api", guarded=bool(key))
    name_efforts(app)


def freeze_gc(server_args: Any) -> None:
    """REPLACE `_freeze_gc_after_server_warmup`: the same request, with our key."""
    key = read_key()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        httpx.post(f"{server_args.url()}/freeze_gc", headers=headers, timeout=10).raise_for_status()
    except httpx.HTTPError as error:
        receipts.emit("warning", text=f"post-warm-up freeze_gc failed: {error}")
