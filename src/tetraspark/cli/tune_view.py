"""What `tetraspark tune` prints for people: a table of times, a plot, and the thresholds."""

from rich.table import Table

from tetraspark.cli.curve_plot import Curve, plot
from tetraspark.cli.output import out
from tetraspark.collectives.thresholds import Thresholds
from tetraspark.measure.report.figure import shortened
from tetraspark.measure.tune_measured import Measured


def print_tuning(thresholds: Thresholds, measured: Measured) -> None:
    """Print what was measured and what follows from it."""
    about = "; ".join(f"{name} {value}" for name, value in measured.about.items())
    out.print(f"# {thresholds.key.name}, measured at {measured.at}", markup=False)
    out.print(f"# {about}", markup=False)
    out.print(
        "# us of an all-reduce, bf16, in place: median of each rank over "
        f"{measured.rounds} rounds, the slowest rank, median of {len(measured.repeats)} repeats",
        markup=False,
    )
    out.print(_table(thresholds, measured))
    _print_plot(thresholds, measured)
    out.print(f"[bold]{thresholds}[/]")


def _table(thresholds: Thresholds, measured: Measured) -> Table:
    table = Table(box=None)
    rival = measured.rival
    for title in ("bytes", "one-shot", "two-shot", rival, "two / one", f"ours / {rival}"):
        table.add_column(title, justify="right")
    for one in measured.curve:
        ours = one.ours(thresholds.two_shot_from)
        table.add_row(
            str(one.size),
            *(f"{us:.1f}" for us in (one.one_shot, one.two_shot, one.rival)),
            f"{one.two_shot / one.one_shot:.2f}",
            f"{ours / one.rival:.3f}",
        )
    return table


def _print_plot(thresholds: Thresholds, measured: Measured) -> None:
    curve = measured.curve
    lines = (
        Curve(measured.rival, measured.rival[0], "dim", tuple(one.rival for one in curve)),
        Curve("one-shot", "1", "yellow", tuple(one.one_shot for one in curve)),
        Curve("two-shot", "2", "cyan", tuple(one.two_shot for one in curve)),
    )
    sizes = [one.size for one in curve]
    marked = {}
    if thresholds.two_shot_from in sizes:
        marked[f"two-shot from {shortened(thresholds.two_shot_from)}"] = thresholds.two_shot_from
    if thresholds.reduce_limit in sizes:
        marked[f"ours up to {shortened(thresholds.reduce_limit)}"] = thresholds.reduce_limit
    out.print("us, " + ", ".join(f"{one.letter} {one.name}" for one in lines), markup=False)
    for line in plot(sizes, lines, marked, out.width):
        out.print(line)
