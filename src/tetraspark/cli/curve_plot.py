"""Curves over sizes in a terminal, on logarithmic axes."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.text import Text

from tetraspark.measure.report.figure import shortened
from tetraspark.measure.report.scale import Scale, decades, mark

HEIGHT = 16
MARGIN = 8
"""Columns for the marks of the vertical axis."""
STEPS = (3, 7)
"""Fewest and most columns from one size to the next."""


@dataclass(frozen=True)
class Curve:
    """One value a size; `letter` stands at each, in the colour `style`."""

    name: str
    letter: str
    style: str
    values: tuple[float, ...]


def plot(
    sizes: Sequence[int], curves: Sequence[Curve], marked: Mapping[str, int], columns: int
) -> Iterator[Text]:
    """Yield the lines of a plot; sizes double. `marked` are words to point at sizes with."""
    step = max(STEPS[0], min(STEPS[1], (columns - MARGIN) // max(len(sizes), 1)))
    y, ticks = decades([one for curve in curves for one in curve.values], HEIGHT - 1, 0)
    cells = _cells(curves, y, step)
    labels = {round(y(value)): mark(value) for value in ticks}
    for row in range(HEIGHT):
        line = Text(f"{labels.get(row, ''):>{MARGIN - 2}} │", no_wrap=True)
        for column in range((len(sizes) - 1) * step + 1):
            line.append(*cells.get((row, column), (" ", "")))
        yield line
    yield from _axis(sizes, step)
    for words, size in marked.items():
        yield Text(" " * (MARGIN + sizes.index(size) * step) + f"^ {words}", no_wrap=True)


def _cells(curves: Sequence[Curve], y: Scale, step: int) -> dict[tuple[int, int], tuple[str, str]]:
    """Return what stands at (row, column): dots first, so that no letter is hidden by one."""
    cells = {}
    for curve in curves:
        for index, (one, two) in enumerate(zip(curve.values, curve.values[1:], strict=False)):
            for part in range(1, step):
                # Straight between two points of a logarithmic axis.
                value = math.exp(math.log(one) + (math.log(two) - math.log(one)) * part / step)
                cells[round(y(value)), index * step + part] = ("·", curve.style)
    for curve in curves:
        for index, value in enumerate(curve.values):
            cells[round(y(value)), index * step] = (curve.letter, curve.style)
    return cells


def _axis(sizes: Sequence[int], step: int) -> Iterator[Text]:
    yield Text(" " * (MARGIN - 1) + "└" + "─" * ((len(sizes) - 1) * step + 1), no_wrap=True)
    every = 2 if step < max(len(shortened(size)) for size in sizes) + 1 else 1
    names = "".join(f"{shortened(size):<{step * every}}" for size in sizes[::every])
    yield Text(" " * MARGIN + names.rstrip(), no_wrap=True)
