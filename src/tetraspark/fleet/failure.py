"""Kinds of failure that other programs tell in words: what shows each, and what to do about it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tetraspark.fleet.plain import plain


@dataclass(frozen=True)
class Kind:
    """A kind of failure: its name, the text that shows it, what is wanted, the command to type.

    `fix` is a format string; whoever uses a kind says what it knows.
    """

    name: str
    text: re.Pattern[str]
    wanted: str
    fix: str

    def cause(self, text: str, noise: re.Pattern[str]) -> str:
        """Return the last line that shows the kind, or else the last that says anything."""
        lines = [line.strip() for line in plain(text).split("\n") if not noise.match(line)]
        shown = [line for line in lines if self.text.pattern and self.text.search(line)]
        return (shown or lines or [""])[-1][:300]


def kind(name: str, text: str, wanted: str, fix: str) -> Kind:
    """Return a kind that a regular expression shows."""
    return Kind(name, re.compile(text), wanted, fix)


def first_kind(kinds: Iterable[Kind], text: str) -> Kind | None:
    """Return the first kind that a text shows: what names the cause comes before its effects."""
    return next((one for one in kinds if one.text.search(text)), None)
