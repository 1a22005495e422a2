"""Quiet: while a suite times a line, nothing else looks at it.

Even cheap looks cost: asking a GPU every two seconds adds 0.6 ms to a step on the machines this
is for. A suite holds the lock shared for as long as it runs; a watch holds it alone for a look.
"""

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path


def _lock(root: Path) -> Path:
    return root / "quiet"


@contextlib.contextmanager
def measuring(root: Path) -> Iterator[None]:
    """Keep looks away from the line whose folder is `root`; waits for the end of one under way."""
    with _lock(root).open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


@contextlib.contextmanager
def looking(root: Path) -> Iterator[bool]:
    """Yield whether the line may be looked at now; no suite begins meanwhile."""
    with _lock(root).open("w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def is_quiet(root: Path) -> bool:
    """Tell whether a suite is timing the line at this moment."""
    try:
        with _lock(root).open("r", encoding="utf-8") as file:
            # A look holds the lock alone, so who can share it with nobody else is not looking.
            return _taken(file.fileno(), fcntl.LOCK_SH) and not _taken(file.fileno(), fcntl.LOCK_EX)
    except FileNotFoundError:
        return False


def _taken(handle: int, how: int) -> bool:
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
