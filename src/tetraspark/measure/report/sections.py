"""The sections of a page: what of a comparison belongs together, as plots, rows and tables."""

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from tetraspark.measure.report.compare import Comparison, Pair
from tetraspark.measure.report.figure import Cell, Gathered, Tally, TallyKey, Trace
from tetraspark.measure.report.foreign_text import clean
from tetraspark.measure.report.plot import Dot, Line, Plot, svg

TITLES = {
    "decode": "Decode",
    "prefill": "Prefill",
    "needle": "Needle in a long text",
    "soak": "Soak",
    "quality": "Quality",
    "start": "Cold start",
    "transport": "Transport on and off",
    "collectives": "Collectives",
}
NOTES_SHOWN = 40


@dataclass(frozen=True)
class Group:
    """The cells of one protocol of a suite: its plots, and its rows."""

    quantity: str
    unit: str
    better: str
    protocol: str
    plots: tuple[Markup, ...]
    pairs: tuple[Pair, ...]


@dataclass(frozen=True)
class Grid:
    """Tallies of one protocol as a table: rows by columns, a pair in each place.

    `notes` are by the name of the set; `left_out` of them are not shown.
    """

    protocol: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[Tally | None, Tally | None], ...]], ...]
    notes: tuple[tuple[str, str], ...]
    left_out: int


@dataclass(frozen=True)
class Section:
    """All that the page shows of one suite."""

    title: str
    groups: tuple[Group, ...]
    grids: tuple[Grid, ...]


def sections(comparison: Comparison) -> Iterator[Section]:
    """Yield a section for each suite that was measured."""
    for suite, title in TITLES.items():
        groups, grids = tuple(_groups(comparison, suite)), tuple(_grids(comparison, suite))
        if groups or grids:
            yield Section(title, groups, grids)


def _groups(comparison: Comparison, suite: str) -> Iterator[Group]:
    pairs = [pair for pair in comparison.pairs if pair.key.suite == suite]
    for quantity, protocol in dict.fromkeys((p.key.quantity, p.key.protocol) for p in pairs):
        here = [p for p in pairs if (p.key.quantity, p.key.protocol) == (quantity, protocol)]
        traces = tuple(_traces(comparison, suite, protocol))
        panels = dict.fromkeys(pair.key.panel for pair in here)
        plots = traces or tuple(
            Plot(panel, quantity, _lines([pair for pair in here if pair.key.panel == panel]))
            for panel in panels
        )
        drawn = tuple(_figure(plot) for plot in plots)
        yield Group(quantity.title, quantity.unit, quantity.better, protocol, drawn, tuple(here))


def _figure(plot: Plot) -> Markup:
    # The drawing is built as XML: its texts are escaped, and it can hold no other element.
    return Markup("<figure><figcaption>{}</figcaption>{}</figure>").format(
        clean(plot.title), Markup(svg(plot))
    )


def _lines(pairs: list[Pair]) -> tuple[Line, ...]:
    lines = []
    for name in ("against", "run"):
        cells = [(pair.key, getattr(pair, name)) for pair in pairs]
        dots = [Dot(key.x, key.label, cell) for key, cell in cells if cell is not None]
        if dots:
            ordered = tuple(sorted(dots, key=lambda dot: dot.x))
            lines.append(Line(name, name, ordered, values_shown=name == "run"))
    return tuple(lines)


def _traces(comparison: Comparison, suite: str, protocol: str) -> Iterator[Plot]:
    """Yield a plot over time for each panel that has one."""
    sets = {"against": comparison.other, "run": comparison.run}
    found = [(name, trace) for name, one in sets.items() for trace in _of(one, suite, protocol)]
    for panel in dict.fromkeys(trace.panel for _, trace in found):
        here = [(name, trace) for name, trace in found if trace.panel == panel]
        lines = tuple(
            Line(
                name,
                name,
                tuple(Dot(x, f"{x:.1f} min", _value(value)) for x, value in trace.points),
                values_shown=False,
            )
            for name, trace in here
        )
        yield Plot(panel, here[0][1].quantity, lines)


def _of(found: Gathered, suite: str, protocol: str) -> Iterator[Trace]:
    return (one for one in found.traces if (one.suite, one.protocol) == (suite, protocol))


def _value(value: float | None) -> Cell:
    return Cell((), ("a request of this wave failed",)) if value is None else Cell((value,))


def _grids(comparison: Comparison, suite: str) -> Iterator[Grid]:
    run, other = comparison.run.tallies, comparison.other.tallies
    keys = [key for key in dict.fromkeys([*run, *other]) if key.suite == suite]
    for protocol in dict.fromkeys(key.protocol for key in keys):
        here = [key for key in keys if key.protocol == protocol]
        rows = dict.fromkeys(key.row for key in here)
        columns = tuple(dict.fromkeys(key.column for key in here))
        table = []
        for row in rows:
            places = [TallyKey(suite, protocol, row, column) for column in columns]
            table.append((row, tuple((run.get(one), other.get(one)) for one in places)))
        notes = [
            (name, note)
            for name, tallies in (("run", run), ("against", other))
            for key in here
            if key in tallies
            for note in tallies[key].notes
        ]
        left_out = max(len(notes) - NOTES_SHOWN, 0)
        yield Grid(protocol, columns, tuple(table), tuple(notes[:NOTES_SHOWN]), left_out)
