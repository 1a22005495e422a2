"""Watch a window of time on a fleet: look at every node, let it pass, look again."""

import time
from collections.abc import Callable, Mapping, Sequence

from tetraspark.errors import RunError
from tetraspark.fabric.prove import Proof, prove
from tetraspark.fabric.survey import fabrics, look
from tetraspark.fleet.command import NodeRunner


def watch(
    runner: NodeRunner,
    nodes: Sequence[str],
    devices: Mapping[str, tuple[str, ...]],
    meanwhile: Callable[[], None],
) -> Proof:
    """Return what the counters of the nodes show of the time that `meanwhile` takes.

    The window is a little longer than that: a look takes a moment on every node. Raises RunError
    at once when no node at all can be looked at.
    """
    found = look(runner, nodes)
    before = fabrics(found)
    if not before:
        raise RunError(*(one.problems[0] for one in found.values() if isinstance(one, RunError)))
    start = time.monotonic()
    meanwhile()
    seconds = time.monotonic() - start
    return prove(before, fabrics(look(runner, nodes)), seconds, nodes, devices)
