"""What became of each variable of an imported profile."""

from dataclasses import dataclass, field
from typing import Any, Literal

from tetraspark.errors import Problem
from tetraspark.site.envfile import Statement

Outcome = Literal["carried", "env", "not carried"]


def printable(text: str) -> str:
    """Return text with a mark in place of each character that is a code for the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


@dataclass(frozen=True)
class Entry:
    """One variable and its single outcome.

    `keys` are the site keys it went to; `why` says why not, or what to know about it. `earlier`
    are lines of the same name that a later one replaced, as in bash.
    """

    name: str
    line: int
    outcome: Outcome
    keys: tuple[str, ...] = ()
    why: str = ""
    earlier: tuple[int, ...] = ()


@dataclass(frozen=True)
class Added:
    """A setting no variable gave: a default of the bash launcher, written down."""

    key: str
    why: str


@dataclass(frozen=True)
class Report:
    """All outcomes; `needs` are what a person must fill in before the site loads."""

    entries: tuple[Entry, ...]
    statements: tuple[Statement, ...]
    added: tuple[Added, ...]
    needs: tuple[Problem, ...]
    warnings: tuple[Problem, ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """Return the report for `--json`; it holds no value of any variable."""
        return {
            "variables": [
                {
                    "name": entry.name,
                    "line": entry.line,
                    "outcome": entry.outcome,
                    "keys": list(entry.keys),
                    "why": entry.why,
                    "earlier_lines": list(entry.earlier),
                }
                for entry in self.entries
            ],
            "statements": [vars(statement) for statement in self.statements],
            "added": [vars(added) for added in self.added],
            "needs": [problem.as_dict() for problem in self.needs],
            "warnings": [problem.as_dict() for problem in self.warnings],
        }
