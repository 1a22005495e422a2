"""Hairpin queues on all nodes: one node at a time, and no further than the first that fails."""

from typing import Any

from tetraspark.fleet.command import NodeRunner
from tetraspark.ring.apply import Tell
from tetraspark.ring.node_program import ask
from tetraspark.ring.plan import RingPlan
from tetraspark.ring.wanted import wanted

NODE_SECONDS = 600.0


def set_hairpin(
    plan: RingPlan, runner: NodeRunner, undo: bool = False, tell: Tell = lambda text: None
) -> dict[str, list[dict[str, Any]]]:
    """Set the queues that a plan wants and re-initialise their drivers, or put the old ones back.

    All RDMA of a function is gone for seconds meanwhile. Returns each node's functions as they
    are now. Raises RunError at the first node that refuses or does not come back; those before it
    stay changed.
    """
    found = {}
    for one in wanted(plan):
        tell(f"hairpin queues of {one.node}: links drop for seconds")
        answer = ask(runner, one.node, one.request("hairpin", undo=undo), NODE_SECONDS)
        found[one.node] = answer["hairpin"]
    return found
