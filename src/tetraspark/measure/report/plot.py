"""A plot as inline SVG: medians with bars from the smallest to the largest sample, no script.

An invalid cell is a cross on the axis, and cuts the line: it has no place among the numbers.
Colours are classes of the page's style sheet, so that they follow its light and dark.
"""

import xml.etree.ElementTree as ET
from dataclasses import dataclass

from tetraspark.measure.report.figure import Cell, Quantity
from tetraspark.measure.report.foreign_text import clean
from tetraspark.measure.report.scale import Scale, decades, from_zero, mark, number, ticks

WIDTH, HEIGHT = 316, 220
LEFT, RIGHT, TOP, BOTTOM = 42, 256, 26, 176
APART = 13
"""Units between two labels that do not overlap."""
X_MARKS = 8


@dataclass(frozen=True)
class Dot:
    """One cell in a plot."""

    x: float
    label: str
    cell: Cell


@dataclass(frozen=True)
class Line:
    """One set's dots, by x; `name` stands at its end, `css` is its class."""

    name: str
    css: str
    dots: tuple[Dot, ...]
    values_shown: bool = True


@dataclass(frozen=True)
class Plot:
    """One plot of one quantity."""

    title: str
    quantity: Quantity
    lines: tuple[Line, ...]


def svg(plot: Plot) -> str:
    """Return the plot as an `<svg>` element; text in it is escaped."""
    names = ", ".join(line.name for line in plot.lines)
    described = f"{plot.title}: {plot.quantity.title}, {plot.quantity.unit}; {names}"
    root = ET.Element(
        "svg", viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", attrib={"aria-label": clean(described)}
    )
    x, y = _x_axis(root, plot), _y_axis(root, plot)
    ends = []
    for line in plot.lines:
        _line(root, line, x, y, joined=plot.quantity.x_scale != "category")
        ends.append((line, _end(line, y)))
    _names(root, ends)
    return ET.tostring(root, encoding="unicode")


def _add(parent: ET.Element, tag: str, css: str, **numbers: float | str) -> ET.Element:
    names = {name.replace("_", "-"): _attribute(value) for name, value in numbers.items()}
    return ET.SubElement(parent, tag, {"class": css, **names})


def _attribute(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")


def _text(parent: ET.Element, css: str, x: float, y: float, words: str) -> None:
    _add(parent, "text", css, x=x, y=y).text = clean(words)


def _x_axis(root: ET.Element, plot: Plot) -> Scale:
    quantity = plot.quantity
    labels = dict(sorted({dot.x: dot.label for line in plot.lines for dot in line.dots}.items()))
    log = quantity.x_scale == "log2"
    inset = 16 if log or quantity.x_scale == "category" else 0
    low = 0.0 if quantity.x_scale == "linear" else min(labels, default=0.0)
    x = Scale(low, max(labels, default=1.0), LEFT + inset, RIGHT - inset, log)
    marks = labels
    if quantity.x_scale == "linear":
        marks = {value: mark(value) for value in ticks(low, max(labels, default=1.0) or 1.0)}
    _add(root, "line", "axis", x1=LEFT, y1=BOTTOM, x2=RIGHT, y2=BOTTOM)
    every = -(-len(marks) // X_MARKS)
    for value, label in list(marks.items())[::every]:
        _text(root, "tick middle", x(value), BOTTOM + 16, label)
    _text(root, "title middle", (LEFT + RIGHT) / 2, BOTTOM + 36, quantity.x_title)
    return x


def _y_axis(root: ET.Element, plot: Plot) -> Scale:
    valid = [dot.cell for line in plot.lines for dot in line.dots if dot.cell.valid]
    values = [value for cell in valid for value in (cell.low, cell.high)]
    make = decades if plot.quantity.log else from_zero
    y, marks = make(values, BOTTOM, TOP)
    for value in marks:
        _add(root, "line", "grid", x1=LEFT, y1=y(value), x2=RIGHT, y2=y(value))
        _text(root, "tick end", LEFT - 6, y(value) + 4, mark(value))
    _text(root, "title", 4, TOP - 14, plot.quantity.unit)
    return y


def _line(root: ET.Element, line: Line, x: Scale, y: Scale, joined: bool) -> None:
    group = _add(root, "g", line.css)
    for first, second in zip(line.dots, line.dots[1:], strict=False):
        if joined and first.cell.valid and second.cell.valid:
            ends = {"x1": x(first.x), "y1": y(first.cell.median)}
            _add(group, "line", "path", **ends, x2=x(second.x), y2=y(second.cell.median))
    for dot in line.dots:
        if dot.cell.valid:
            _valid(group, line, dot, x(dot.x), y)
        else:
            _cross(group, line, dot, x(dot.x))


def _valid(group: ET.Element, line: Line, dot: Dot, x: float, y: Scale) -> None:
    cell = dot.cell
    middle, low, high = y(cell.median), y(cell.low), y(cell.high)
    if len(cell.samples) > 1:
        _add(group, "line", "bar", x1=x, y1=low, x2=x, y2=high)
        for end in (low, high):
            _add(group, "line", "bar", x1=x - 3, y1=end, x2=x + 3, y2=end)
    if line.css == "run":
        shape = _add(group, "circle", "dot", cx=x, cy=middle, r=3.5)
    else:
        shape = _add(group, "rect", "dot", x=x - 3, y=middle - 3, width=6, height=6)
    told = f"{line.name}, {dot.label}: {number(cell.median)}"
    spread = f" ({number(cell.low)} to {number(cell.high)}, {len(cell.samples)} samples)"
    ET.SubElement(shape, "title").text = clean(told + spread)
    if line.values_shown:
        _text(group, "value middle", x, high - 6, number(cell.median))


def _cross(group: ET.Element, line: Line, dot: Dot, x: float) -> None:
    path = f"M{x - 4:.1f} {BOTTOM - 10} l8 8 m0 -8 l-8 8"
    shape = _add(group, "path", "invalid", d=path)
    told = f"{line.name}, {dot.label}: invalid: {dot.cell.why}"
    ET.SubElement(shape, "title").text = clean(told)


def _end(line: Line, y: Scale) -> float:
    valid = [dot for dot in line.dots if dot.cell.valid]
    return y(valid[-1].cell.median) if valid else BOTTOM - 6


def _names(root: ET.Element, ends: list[tuple[Line, float]]) -> None:
    """Write each line's name at its end, one under the other where they would overlap."""
    place = float("-inf")
    for line, wanted in sorted(ends, key=lambda one: one[1]):
        place = max(wanted, place + APART)
        group = _add(root, "g", line.css)
        _text(group, "name", RIGHT + 6, min(place, BOTTOM + 8) + 4, line.name)
