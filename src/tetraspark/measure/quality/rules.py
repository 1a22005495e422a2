"""Rules of form that a text keeps or breaks. Pure."""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tetraspark.measure.quality.numerals import numbers

APOSTROPHE = "\N{RIGHT SINGLE QUOTATION MARK}"
WORD = re.compile(rf"[^\W\d_]+(?:['{APOSTROPHE}-][^\W\d_]+)*")


class Rule(Protocol):
    """One rule."""

    def fault(self, text: str) -> str | None:
        """Return what breaks the rule, or None."""


@dataclass(frozen=True)
class Exactly:
    """The text is this one."""

    text: str

    def fault(self, text: str) -> str | None:
        """Return what breaks the rule, or None."""
        return None if text == self.text else f"not {self.text!r}"


@dataclass(frozen=True)
class Whole:
    """The whole text matches a pattern."""

    pattern: str

    def fault(self, text: str) -> str | None:
        """Return what breaks the rule, or None."""
        return None if re.fullmatch(self.pattern, text) else f"not of the form {self.pattern}"


@dataclass(frozen=True)
class Lines:
    """There are so many lines, none empty, and each matches a pattern."""

    count: int
    pattern: str = r".*\S.*"

    def fault(self, text: str) -> str | None:
        """Return what breaks the rule, or None."""
        lines = text.split("\n")
        if len(lines) != self.count:
            return f"{len(lines)} lines, not {self.count}"
        odd = [line for line in lines if not re.fullmatch(self.pattern, line)]
        return f"a line not of the form {self.pattern}: {odd[0][:60]!r}" if odd else None


@dataclass(frozen=True)
class Words:
    """There are so many words."""

    count: int

    def fault(self, text: str) -> str | None:
        """Return what breaks the rule, or None."""
        count = len(WORD.findall(text))
        return None if count == self.count else f"{count} words, not {self.count}"


@dataclass(frozen=True)
class Numbers:
    """The numbers of the text, wherever they stand, are these in this order."""

    values: tuple[int, ...]

    def fault(self, text: str) -> str | None:
        """Return what breaks the rule, or None."""
        found = numbers(text)
        if found == list(self.values):
            return None
        return f"the numbers {', '.join(f'{one:g}' for one in found)[:80] or '(none)'}"


@dataclass(frozen=True)
class Items:
    """The text is a list of these, in this order, one a line or with commas."""

    values: tuple[str, ...]

    def fault(self, text: str) -> str | None:
        """Return what breaks the rule, or None."""
        found = _items(text)
        return None if found == list(self.values) else f"the items {', '.join(found)[:80]}"


@dataclass(frozen=True)
class Members:
    """The text is a list of so many different words, all of a known set, in any order."""

    count: int
    known: frozenset[str]

    def fault(self, text: str) -> str | None:
        """Return what breaks the rule, or None."""
        found = _items(text)
        odd = [one for one in found if one.lower() not in self.known]
        if odd:
            return f"{odd[0][:40]!r} is none of them"
        different = len({one.lower() for one in found})
        if different != len(found) or different != self.count:
            return f"{len(found)} items, {different} different, not {self.count}"
        return None


@dataclass(frozen=True)
class Without:
    """The text matches a pattern nowhere, in either case."""

    pattern: str

    def fault(self, text: str) -> str | None:
        """Return what breaks the rule, or None."""
        found = re.search(self.pattern, text, re.IGNORECASE)
        return f"it holds {found[0][:40]!r}" if found else None


@dataclass(frozen=True)
class Rows:
    """The text is CSV of exactly these rows."""

    rows: tuple[tuple[str, ...], ...]

    def fault(self, text: str) -> str | None:
        """Return what breaks the rule, or None."""
        try:
            found = [tuple(row) for row in csv.reader(io.StringIO(text), strict=True)]
        except csv.Error as error:
            return f"no CSV: {error}"
        for number, (row, wanted) in enumerate(zip(found, self.rows, strict=False), 1):
            if row != wanted:
                return f"row {number} is {row}, not {wanted}"
        return None if len(found) == len(self.rows) else f"{len(found)} rows, not {len(self.rows)}"


def broken(text: str, rules: Sequence[Rule]) -> str | None:
    """Return the first fault, or None when every rule is kept."""
    return next((fault for rule in rules if (fault := rule.fault(text)) is not None), None)


def _items(text: str) -> list[str]:
    return [part.strip(" \t-*.") for part in re.split(r"[,\n]", text)]
