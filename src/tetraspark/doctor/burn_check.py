"""The GPU clocks of the nodes under load, against a bound and against each other."""

from collections.abc import Iterator, Mapping
from statistics import median

from tetraspark.doctor.burn import Burn
from tetraspark.doctor.finding import Finding
from tetraspark.doctor.gpu import IDLE, idle
from tetraspark.doctor.left_over import CONTAINERS, running
from tetraspark.doctor.node_view import NodeView

LEAST_TFLOPS = 50.0
"""A GB10 whose clock is latched low was reported at 24, a sound one above 60."""
LEAST_SHARE = 0.9
WANTED = IDLE | CONTAINERS
POWER = "shut it down, unplug its power for a minute, start it again: a reboot does not help"


def refusal(view: NodeView) -> str | None:
    """Say why a node must not be loaded now, or return None."""
    if running(view):
        return "the line runs there"
    return next((one.observed for one in idle(view) if one.verdict != "ok"), None)


def clocks(views: Mapping[str, NodeView]) -> Iterator[Finding]:
    """Judge each node's rate: of its own, and against the median of all."""
    burns = {node: view.burn for node, view in views.items() if isinstance(view.burn, Burn)}
    middle = median(burn.tflops for burn in burns.values()) if burns else 0.0
    wanted = f"{LEAST_TFLOPS:g} TFLOPS fp16, and no more than 10 % below the median"
    for node, view in views.items():
        burn = view.burn
        if not isinstance(burn, Burn):
            fix = "tetraspark status; stop what uses the GPU, then: tetraspark doctor --burn"
            yield Finding("unknown", f"not measured: {burn or 'not asked'}", wanted, fix, node)
            continue
        slow = burn.tflops < max(LEAST_TFLOPS, LEAST_SHARE * middle)
        seen = f"{burn}; median {middle:.1f} TFLOPS"
        yield Finding("failed" if slow else "ok", seen, wanted, POWER if slow else "", node)
