"""The clocks of the nodes against each other."""

from collections.abc import Iterator, Mapping
from statistics import median

from tetraspark.doctor.finding import Finding
from tetraspark.doctor.node_view import NodeView

SKEW_SECONDS = 10.0
"""More than the slowest probe may differ from the fastest: clocks are read when each ends."""


def skew(views: Mapping[str, NodeView]) -> Iterator[Finding]:
    """Judge how far the clocks are from their median."""
    times = {node: view.facts.time for node, view in views.items()}
    wanted = f"clocks within {SKEW_SECONDS:g} s of each other"
    middle = median(times.values())
    far = {node: time - middle for node, time in times.items() if abs(time - middle) > SKEW_SECONDS}
    for node, seconds in far.items():
        fix = views[node].shell("timedatectl; sudo systemctl restart systemd-timesyncd")
        yield Finding("warning", f"{seconds:+.0f} s from the others", wanted, fix, node)
    if not far:
        spread = max(times.values()) - min(times.values())
        yield Finding("ok", f"{spread:.1f} s between the first and the last", wanted)
