"""Find a generation that repeats itself, token by token. Pure.

A *piece* of `period` tokens, repeated, *covers* the tokens at the end of the text that agree with
those one period before them, and the first piece. Only the shortest period of a repeated text
counts: `ab ab ab ab` is a piece of two tokens, not of four.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from tetraspark.engine.guard_env import MAX_PIECE, GuardSettings

SHORT = 4
"""A piece shorter than the n-gram has to cover this many times what n-grams have to."""

GRAM = 8
"""Tokens that must all have been seen before, for as long as a loop lasts, to be worth a look."""


@dataclass(frozen=True)
class Loop:
    """What was found: a piece of `period` tokens, and how often it stands at the end."""

    period: int
    copies: int


@dataclass(frozen=True)
class LoopRules:
    """From which cover on, in tokens, a repeated piece is a loop."""

    ngram: int
    repeats: int
    same_token: int
    line_repeats: int
    longest: int = MAX_PIECE

    @property
    def short(self) -> int:
        """Cover of a short piece that is not one line: long rows of zeros are no loop yet."""
        return SHORT * self.ngram * self.repeats

    @property
    def window(self) -> int:
        """Tokens that have to be kept to know every cover that is needed."""
        return max(self.repeats * self.longest, self.short, self.same_token)

    @cached_property
    def gap(self) -> int:
        """The fewest tokens that agree with earlier ones before anything can be a loop."""
        periods = range(1, self.longest + 1)
        return min(self.needed(p, line) - p for p in periods for line in (False, True))

    def needed(self, period: int, one_line: bool) -> int:
        """Return the cover from which on a piece is a loop.

        `one_line`: the piece holds one end of a line, so it is a line, which tables and data
        repeat more often than prose its sentences.
        """
        if period == 1:
            return self.same_token
        lines = max(self.line_repeats * period, self.ngram * self.repeats)
        few = min(lines, self.short) if one_line else self.short
        if period < self.ngram:
            return few
        return max(self.repeats * period, few) if one_line else self.repeats * period


def rules_of(settings: GuardSettings) -> LoopRules:
    """Return the rules that a plan's settings make."""
    return LoopRules(
        settings.loop_ngram,
        settings.loop_repeats,
        settings.loop_same_token,
        settings.loop_line_repeats,
    )


class LoopDetector:
    """Told each token once; O(1) amortised a token, for fixed rules, in time and memory.

    The ends of the text are compared with each other only after as many tokens as the rules
    demand have ended in eight that were seen before, and then not again before a loop could be
    complete.
    """

    def __init__(self, rules: LoopRules, ends_line: Callable[[int], bool]) -> None:
        self.count = 0
        self._rules = rules
        self._ends_line = ends_line
        self._tail: list[int] = []
        self._recent: set[int] = set()
        self._older: set[int] = set()
        self._window = rules.window
        self._enough = rules.gap - GRAM + 1
        self._known = 0
        self._due = 0

    def push(self, token: int) -> Loop | None:
        """Take the next token; return the loop that it completes."""
        tail = self._tail
        tail.append(token)
        self.count += 1
        gram = hash(tuple(tail[-GRAM:]))
        if gram in self._recent or gram in self._older:
            self._known += 1
        else:
            self._known = 0
        self._recent.add(gram)
        if len(tail) >= 2 * self._window:
            del tail[: self._window]
            self._older, self._recent = self._recent, set()
        if self._known < self._enough or self.count < self._due:
            return None
        return self._look()

    def _look(self) -> Loop | None:
        """Compare the end with every piece before it; note when the next look is due."""
        rules = self._rules
        end = self._tail[-self._window :][::-1]
        runs = agreement(end)
        lines = self._lines(end[: rules.longest])
        covered, root, wait = 0, 0, rules.gap
        for period in range(1, min(rules.longest, len(end) - 1) + 1):
            run = runs[period]
            if run == 0:
                continue
            cover = run + period
            needed = rules.needed(period, lines[period] == 1)
            if cover > covered:
                if cover >= needed:
                    return Loop(period, cover // period)
                covered, root = cover, period
            elif period % root == 0 and run >= root:
                continue  # the same loop twice over; it ends when the shorter one does
            wait = min(wait, max(1, needed - cover))
        self._due = self.count + wait
        return None

    def _lines(self, end: Sequence[int]) -> list[int]:
        """Return, for each period, how many lines end in the last so many tokens, as a circle.

        Line ends that follow each other, as blank lines do, count once.
        """
        ends = [self._ends_line(token) for token in end]
        found, inner = [0], 0
        for place, is_end in enumerate(ends):
            inner += place > 0 and is_end and not ends[place - 1]
            found.append(inner + (ends[0] and not is_end))
        return found


def agreement(end: Sequence[int]) -> list[int]:
    """Return for each distance how many tokens from the start equal those so much further on.

    The Z function (Gusfield, Algorithms on Strings, 1997); linear in the length.
    """
    size = len(end)
    runs = [0] * size
    left = right = 0
    for place in range(1, size):
        run = min(right - place, runs[place - left]) if place < right else 0
        while place + run < size and end[run] == end[place + run]:
            run += 1
        if place + run > right:
            left, right = place, place + run
        runs[place] = run
    return runs
