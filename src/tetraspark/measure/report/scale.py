"""Axes: where a value stands between two ends of a plot, and which values are marked. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

LEAST = 1e-9
"""What zero is on a logarithmic axis."""


@dataclass(frozen=True)
class Scale:
    """Maps `low` to `begin` and `high` to `end`, in units of the drawing."""

    low: float
    high: float
    begin: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        low, high, here = (self._on(one) for one in (self.low, self.high, value))
        share = (here - low) / (high - low) if high > low else 0.5
        return self.begin + share * (self.end - self.begin)

    def _on(self, value: float) -> float:
        return math.log10(max(value, LEAST)) if self.log else value


def from_zero(values: Sequence[float], begin: float, end: float) -> tuple[Scale, list[float]]:
    """Return a linear scale from zero to above the largest value, and its ticks."""
    top = max(values, default=0.0) * 1.08 or 1.0
    marks = ticks(0.0, top)
    return Scale(0.0, max(top, marks[-1]), begin, end), marks


def decades(values: Sequence[float], begin: float, end: float) -> tuple[Scale, list[float]]:
    """Return a logarithmic scale with a tick at each power of ten about the values."""
    low = math.floor(math.log10(max(min(values, default=1.0), LEAST)))
    high = max(math.ceil(math.log10(max(max(values, default=1.0), LEAST))), low + 1)
    step = -(-(high - low) // 6)
    marks = [10.0**power for power in range(low, high + 1, step)]
    return Scale(10.0**low, 10.0**high, begin, end, log=True), marks


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round values (1, 2, 5 and their tens) from low to at most high."""
    raw = (high - low) / about or 1.0
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)
    first = math.ceil(low / step)
    return [index * step for index in range(first, math.floor(high / step + 1e-9) + 1)]


def number(value: float) -> str:
    """Return a measured value with three digits, and thousands apart: 0.0123, 84.4, 5,288."""
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if not -4 <= size <= 11:
        return f"{value:.2e}"
    return f"{value:,.{max(2 - size, 0)}f}"


def mark(value: float) -> str:
    """Return the text of a tick: 0, 0.5, 2,000, 50k."""
    if abs(value) >= 10_000:
        return f"{value / 1000:g}k"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}"
