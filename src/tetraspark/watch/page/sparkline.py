"""Tokens a second over time as the path of a small plot, cut where nobody looked. Pure."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from tetraspark.measure.report.scale import Scale

WIDTH, HEIGHT = 600, 100
TOP, BOTTOM = 4, 98
GAP = 5
"""Times the usual time between two points, from which the line is cut."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Sparkline:
    """`line` and `area` are SVG path data; `peak` is tokens a second, the ends Unix seconds."""

    line: str
    area: str
    peak: float
    first: float
    last: float


def sparkline(history: Iterable[Point]) -> Sparkline | None:
    """Return the plot of (Unix seconds, tokens a second); None of fewer than two points."""
    points = sorted({at: value for at, value in history if _drawable(at, value)}.items())
    if len(points) < 2:
        return None
    (first, _), (last, _) = points[0], points[-1]
    peak = max(value for _, value in points)
    x = Scale(first, last, 0.0, WIDTH)
    y = Scale(0.0, peak or 1.0, BOTTOM, TOP)
    runs = [[(x(at), y(value)) for at, value in run] for run in _runs(points)]
    line = " ".join("M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in run) for run in runs)
    area = " ".join(_area(run) for run in runs)
    return Sparkline(line, area, peak, first, last)


def _drawable(at: float, value: float) -> bool:
    return math.isfinite(at) and math.isfinite(value) and value >= 0


def _runs(points: list[Point]) -> list[list[Point]]:
    """Cut a series where it paused."""
    longest = GAP * median(after[0] - before[0] for before, after in pairwise(points))
    runs = [[points[0]]]
    for before, after in pairwise(points):
        if after[0] - before[0] > longest:
            runs.append([])
        runs[-1].append(after)
    return runs


def _area(run: list[Point]) -> str:
    path = "L".join(f"{a:.1f} {b:.1f}" for a, b in run)
    return f"M{run[0][0]:.1f} {BOTTOM}L{path}L{run[-1][0]:.1f} {BOTTOM}Z"
