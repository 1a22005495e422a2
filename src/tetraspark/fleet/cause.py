"""What an error text of another program means: its cause, and the next command to type."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tetraspark.errors import Problem


@dataclass(frozen=True)
class Cause:
    """A text that programs are known to print, why they do, and what to do next.

    `text` is looked for in all that was said, line ends included. In `fix`, `{node}` is the node
    and `{rank}` the rank that said it.
    """

    name: str
    text: re.Pattern[str]
    cause: str
    fix: str

    def explain(self, problem: Problem, node: str, rank: int) -> Problem:
        """Return a failure with its cause told, and the next command in front of the others."""
        fix = self.fix.format(node=node, rank=rank)
        fixes = f"{fix}; {problem.fix}" if problem.fix else fix
        return replace(problem, seen=f"{problem.seen} ({self.name}: {self.cause})", fix=fixes)


def cause(name: str, text: str, why: str, fix: str) -> Cause:
    """Return a cause that a regular expression shows."""
    return Cause(name, re.compile(text), why, fix)


def first_cause(causes: Iterable[Cause], text: str) -> Cause | None:
    """Return the first cause that a text shows: what names a cause comes before its effects."""
    return next((one for one in causes if one.text.search(text)), None)
