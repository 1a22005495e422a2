"""Files that are there as a whole or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tetraspark.engram.inside.refusal import Refusal


def write_json(path: Path, value: object) -> None:
    """Write a file and have it on the disk under its name, in one step."""
    new = path.with_name(path.name + ".new")
    with new.open("w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    sync_folder(path.parent)


def read_json(path: Path) -> dict[str, Any] | str | None:
    """Return a JSON object; None where there is no file, words for what is there in its place."""
    if path.exists() and not path.is_file():
        return "not a regular file"
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        return f"not JSON: {error}"
    return value if isinstance(value, dict) else "not a JSON object"


def read_object(path: Path) -> dict[str, Any]:
    """Return a JSON object; an empty one where there is none."""
    value = read_json(path)
    return value if isinstance(value, dict) else {}


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Be the only one meanwhile; the file goes at the end. Raises Refusal when somebody else is."""
    handle = _lock(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def _lock(path: Path) -> int:
    """Open and lock the file that has the name: it may go between the two."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        except FileNotFoundError:
            pass
        except BlockingIOError:
            os.close(handle)
            wanted, fix = "one pack of a shard at a time", "wait for it, then the same command"
            raise Refusal(path, "another pack is at work", wanted, fix) from None
        os.close(handle)
