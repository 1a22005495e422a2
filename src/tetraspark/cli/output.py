"""How the command line talks: to people on a terminal, to programs as JSON."""

import errno
import io
import json
import os
import sys
from collections.abc import Iterable
from typing import TextIO

from rich.console import Console
from rich.text import Text

from tetraspark.cli.journal import entry, is_journal, problem_entry
from tetraspark.errors import Problem
from tetraspark.fleet.plain import CONTROL

# A pipe has no width of its own, and Rich's 80 columns would fold tables that a file can hold.
PIPE_COLUMNS = 160


def _console(stderr: bool) -> Console:
    stream: TextIO | None = sys.stderr if stderr else sys.stdout
    terminal = stream is not None and stream.isatty()
    width = None if terminal or "COLUMNS" in os.environ else PIPE_COLUMNS
    # Whatever FORCE_COLOR says, the journal gets none; elsewhere rich decides.
    forced = False if is_journal(stream) else None
    # Without emoji: an image called `line:ring: ...` is no jewellery.
    return Console(
        stderr=stderr,
        highlight=False,
        emoji=False,
        soft_wrap=True,
        width=width,
        force_terminal=forced,
    )


out = _console(stderr=False)
err = _console(stderr=True)


class ClosedOutput(io.TextIOBase):
    """Stands for a stdout that the caller closed: nothing may be lost without a word."""

    def write(self, text: str) -> int:
        """Raise OSError."""
        raise OSError(errno.EBADF, "it is closed")


def shown(text: str) -> str:
    """Return text of somebody else's with its control characters written out.

    A terminal obeys them; line ends and tabs stay. So are lone surrogates, which no output takes.
    """
    encodable = text.encode(errors="backslashreplace").decode()
    return CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", encodable)


def print_json(value: object) -> None:
    """Print one JSON document to stdout."""
    sys.stdout.write(json.dumps(value, indent=1, default=str) + "\n")


def print_news(text: str) -> None:
    """Print one line about what goes on to stderr; `text` may be of somebody else's."""
    if is_journal(sys.stderr):
        err.print(entry(text), markup=False)
    else:
        err.print(shown(text), markup=False)


def print_problems(problems: Iterable[Problem], word: str = "error", style: str = "red") -> None:
    """Print problems to stderr, each as what was seen, what was wanted and what to do."""
    for problem in problems:
        if is_journal(sys.stderr):
            err.print(problem_entry(problem, word), markup=False)
            continue
        err.print(Text.assemble((f"{word}: ", f"bold {style}"), (shown(problem.where), "bold")))
        for label, text in (
            ("seen", problem.seen),
            ("wanted", problem.wanted),
            ("fix", problem.fix),
        ):
            if text:
                err.print(Text.assemble((f"  {label + ':':<8}", "dim"), shown(text)))
