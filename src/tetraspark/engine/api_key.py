"""The API key, taken from a file.

The engine's own `--api-key` puts the key into argv, into the log's `server_args` line and into
`/server_info`. Here only the file's path travels.
"""

import os
from pathlib import Path
from typing import Any

import httpx

from tetraspark.engine import receipts

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


def before_http_server(*args: Any, **kwargs: Any) -> None:
    """BEFORE `_setup_and_run_http_server`: guard every endpoint but health with the key."""
    from sglang.srt.entrypoints.http_server import app
    from sglang.srt.utils.auth import add_api_key_middleware

    key = read_key()
    if key:
        add_api_key_middleware(app, api_key=key, admin_api_key=None)
    receipts.emit("api", guarded=bool(key))


def freeze_gc(server_args: Any) -> None:
    """REPLACE `_freeze_gc_after_server_warmup`: the same request, with our key."""
    key = read_key()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        httpx.post(f"{server_args.url()}/freeze_gc", headers=headers, timeout=10).raise_for_status()
    except httpx.HTTPError as error:
        receipts.emit("warning", text=f"post-warm-up freeze_gc failed: {error}")
