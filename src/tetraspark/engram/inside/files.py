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


def read_json(path: Path) -> dict[str, Any] | None:
    """Return a JSON object; None where there is no file, {} where it holds something else."""
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        return {}
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
    """Be the only one meanwhile. Raises Refusal when somebody else is."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            wanted, fix = "one pack of a shard at a time", "wait for it, then the same command"
            raise Refusal(path, "another pack is at work", wanted, fix) from None
        yield
    finally:
        os.close(handle)
