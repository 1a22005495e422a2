"""A step of a build: one command, where it runs, and what a person must know to paste it."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Phase = Literal["wait", "reach", "copy", "verify", "base", "build", "inspect"]


@dataclass(frozen=True)
class BuildStep:
    """A command of a phase, word by word.

    It runs on every node, or with `node` on this machine, for that node. `stdin` is a file of
    this machine that it reads; `note` is when it runs, where that is not always, or what it must
    print.
    """

    phase: Phase
    argv: tuple[str, ...]
    node: str | None = None
    stdin: Path | None = None
    note: str = ""

    @property
    def words(self) -> str:
        """What a person reads beside the command: where it runs, the note, and what it reads."""
        where = "on each node" if self.node is None else f"on this machine, for {self.node}"
        stdin = f"stdin is {self.stdin} of this machine" if self.stdin else ""
        return ", ".join(part for part in (where, self.note, stdin) if part)

    def __str__(self) -> str:
        """Return the command as a shell takes it."""
        return shlex.join(self.argv)

    def as_dict(self) -> dict[str, object]:
        """Return JSON-able values."""
        return {
            "phase": self.phase,
            "node": self.node,
            "argv": list(self.argv),
            "stdin": str(self.stdin) if self.stdin else None,
            "note": self.note,
        }
