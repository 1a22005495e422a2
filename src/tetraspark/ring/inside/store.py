"""Files that must survive a cut of the power, and the node's one lock: runs inside the node."""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tetraspark.ring.inside.say import Refusal, problem

STATE = Path("/var/lib/tetraspark/ring")
LOCK_SECONDS = 20.0


def write(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a file as a whole, on the disk before this returns, its folders included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(handle, "wb") as file:
        os.fchmod(handle, mode)
        file.write(data)
        file.flush()
        os.fsync(handle)
    part.replace(path)
    sync(path.parent)


def remove(path: Path) -> None:
    """Remove a file, on the disk before this returns; one that is not there is no error."""
    path.unlink(missing_ok=True)
    if path.parent.is_dir():
        sync(path.parent)


def sync(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sha256(path: Path) -> str | None:
    """Return the hash of a file, or None when it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


@contextmanager
def locked() -> Iterator[None]:
    """Hold the node's lock: one program at a time changes the ring. Raises Refusal."""
    STATE.mkdir(parents=True, exist_ok=True)
    with (STATE / "lock").open("a") as file:
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    seen = f"another program has held {STATE}/lock for {LOCK_SECONDS:g} s"
                    fix = f"fuser -v {STATE}/lock"
                    raise Refusal(problem("ring", seen, "one change at a time", fix)) from None
                time.sleep(0.05)
        yield
