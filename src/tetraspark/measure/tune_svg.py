"""The curves of `tetraspark tune` as an SVG file that needs no other file."""

from tetraspark.measure.report.figure import Cell, Quantity, shortened
from tetraspark.measure.report.plot import Dot, Line, Plot, svg
from tetraspark.measure.tune import Curve

TIME = Quantity("all-reduce", "microseconds", "less", "bytes", "log2", log=True)
STYLE = """
svg { font: 11px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; background: #fff; }
text { fill: #57606a; } .middle { text-anchor: middle; } .end { text-anchor: end; }
.axis { stroke: #57606a; } .grid { stroke: #d0d7de; stroke-width: .7; } .path { stroke-width: 1.8; }
.one line { stroke: #b8500a; } .one .dot, .one .name { fill: #b8500a; }
.two line { stroke: #0072b2; } .two .dot, .two .name { fill: #0072b2; }
.rival line { stroke: #57606a; stroke-dasharray: 5 3; } .rival .dot { fill: #57606a; }
"""


def tune_svg(curve: Curve, title: str, rival: str) -> str:
    """Return the document: both algorithms and the rival over size, on logarithmic axes."""
    lines = (
        _line(rival, "rival", [(one.size, one.rival) for one in curve]),
        _line("one-shot", "one", [(one.size, one.one_shot) for one in curve]),
        _line("two-shot", "two", [(one.size, one.two_shot) for one in curve]),
    )
    drawn = svg(Plot(title, TIME, lines))
    head, rest = drawn.split(">", 1)
    head = head.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return f"{head}><style>{STYLE}</style>{rest}\n"


def _line(name: str, css: str, values: list[tuple[int, float]]) -> Line:
    dots = tuple(Dot(float(size), shortened(size), Cell((us,))) for size, us in values)
    return Line(name, css, dots, values_shown=False)
