"""What changed on a node since the line last became ready."""

from collections.abc import Iterator

from tetraspark.doctor.baseline import NodeState
from tetraspark.doctor.finding import Finding
from tetraspark.doctor.kernel import driver, release
from tetraspark.doctor.memory import meminfo
from tetraspark.doctor.node_view import NodeView
from tetraspark.doctor.size import gib
from tetraspark.fleet.meminfo import GIB

LOST_BYTES = 2 * GIB
"""How much less an idle node may have before it counts: updates were seen to take 8 GiB."""


def state(view: NodeView) -> NodeState:
    """Return the node's state now, for `keep_baseline`."""
    found = meminfo(view)
    return NodeState(release(view), driver(view), found.available if found else 0)


def versions(view: NodeView) -> Iterator[Finding]:
    """Compare kernel and driver with those of the last good start, if there was one."""
    now, good = state(view), view.good
    if good is None:
        return
    wanted = f"as at the last good start: kernel {good.kernel}, driver {good.driver or 'not seen'}"
    seen = f"kernel {now.kernel or 'not seen'}, driver {now.driver or 'not seen'}"
    if not now.kernel or (good.driver and not now.driver):
        yield Finding("unknown", seen, wanted, f"first what GPU.PRESENT says of {view.node}")
    elif (now.kernel, now.driver) != (good.kernel, good.driver):
        fix = "go back to those versions if the line no longer fits or is slower"
        yield Finding("warning", seen, wanted, fix)
    else:
        yield Finding("ok", seen, wanted)


def memory(view: NodeView) -> Iterator[Finding]:
    """Compare the memory of the idle node with that of the last good start, if there was one."""
    now, good = state(view), view.good
    if good is None:
        return
    wanted = f"MemAvailable within {gib(LOST_BYTES)} of the last good start's {gib(good.available)}"
    if not now.available:
        yield Finding("unknown", "MemAvailable not seen", wanted, view.shell("free -h"))
    elif now.available < good.available - LOST_BYTES:
        less = gib(good.available - now.available)
        fix = f"{view.shell('ps -eo rss,pid,comm --sort=-rss | head')}; and see HISTORY.VERSIONS"
        yield Finding("warning", f"{gib(now.available)}, {less} less", wanted, fix)
    else:
        yield Finding("ok", gib(now.available), wanted)
