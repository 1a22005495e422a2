"""Quiet: while a suite times a line, nothing else looks at it.

Even cheap looks cost: asking a GPU every two seconds adds 0.6 ms to a step on the machines this
is for. A suite holds the lock shared for as long as it runs; a watch holds it alone for a look.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tetraspark.fleet import file_lock


def _lock(root: Path) -> Path:
    return root / "quiet"


@contextlib.contextmanager
def measuring(root: Path) -> Iterator[None]:
    """Keep looks away from the line whose folder is `root`; waits for the end of one under way."""
    with _lock(root).open("a+", encoding="utf-8") as file:
        file_lock.take(file, "shared", wait=True)
        yield


@contextlib.contextmanager
def looking(root: Path) -> Iterator[bool]:
    """Yield whether the line may be looked at now; no suite begins meanwhile."""
    with _lock(root).open("a+", encoding="utf-8") as file:
        try:
            file_lock.take(file)
        except BlockingIOError:
            yield False
            return
        yield True


def is_quiet(root: Path) -> bool:
    """Tell whether a suite is timing the line at this moment."""
    return file_lock.held(_lock(root)) == "shared"
