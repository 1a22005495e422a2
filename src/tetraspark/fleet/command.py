"""A command for one node, what came of it, and the protocol of whatever runs it there."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

OnLine = Callable[[str], None]


@dataclass(frozen=True)
class NodeCommand:
    """What to run on a node, word by word: no shell reads it.

    `stdin` is bytes or a local file, and the place for secrets: argv shows up in `ps` on both
    ends. `timeout` is in seconds. Raises ValueError for words that cannot be an argv.
    """

    argv: tuple[str, ...]
    stdin: bytes | Path | None = None
    timeout: float = 60.0

    def __post_init__(self) -> None:
        if not self.argv or not self.argv[0] or self.argv[0].startswith("-"):
            raise ValueError(f"argv must begin with a program: {self.argv!r}")
        if any("\0" in word for word in self.argv):
            raise ValueError("a word of an argv cannot hold a NUL byte")

    def __str__(self) -> str:
        """Return the command as one line to paste into a shell."""
        return shlex.join(self.argv)


@dataclass(frozen=True)
class Result:
    """How a command ended on a node: its exit code and what it wrote, decoded as UTF-8."""

    rc: int
    stdout: str
    stderr: str


class NodeRunner(Protocol):
    """Runs commands on nodes, which it knows by name."""

    def run(self, node: str, command: NodeCommand, on_line: OnLine | None = None) -> Result:
        """Run a command to its end; `on_line` gets each line of either stream as it comes.

        Any exit code is a result. Raises RunError when the command could not be run, when its
        end was not seen, or when it took longer than its timeout.
        """
        ...

    def copy(self, node: str, folder: Path, target: str, timeout: float) -> None:
        """Make the folder `target` of a node equal to a local one: what is not here goes there.

        `target` is relative to the login's home folder. Raises RunError as `run` does, and when
        anything could not be copied.
        """
        ...

    def interrupt(self) -> None:
        """End what runs now, in whatever thread, and start nothing more."""
        ...
