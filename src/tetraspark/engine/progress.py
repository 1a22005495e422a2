"""What a rank's communicator is doing, written beside its log for `status` to read."""

import json
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

INTERVAL_SECONDS = 1.0


def progress_path(run_dir: Path, rank: int) -> Path:
    """Return the file that a rank writes its state to."""
    return run_dir / f"rank{rank}.collectives.json"


def write_in_background(path: Path, state: Callable[[], dict[str, Any]]) -> None:
    """Write `state` to `path` once a second from a daemon thread, in one step for readers.

    Where it cannot be written (a full disk), it is tried again a second later.
    """
    thread = threading.Thread(
        target=_write_forever, args=(path, state), name="tetraspark-progress", daemon=True
    )
    thread.start()


def _write_forever(path: Path, state: Callable[[], dict[str, Any]]) -> None:
    part = path.with_suffix(".part")
    while True:
        text = json.dumps({"at": time.time(), "pid": os.getpid(), **state()})
        with suppress(OSError):
            part.write_text(text)
            part.replace(path)
        time.sleep(INTERVAL_SECONDS)
