"""What goes wrong on a node, said as a problem: where, what was seen, what is wanted, the fix."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path


class Refusal(Exception):
    """Ends the program; its words are shown to a person as they are."""

    def __init__(self, where: object, seen: str, wanted: str, fix: str) -> None:
        super().__init__(f"{where}: {seen}")
        self.problem = {"where": str(where), "seen": seen, "wanted": wanted, "fix": fix}


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let an OSError name the file: one of an open file does not."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise
