"""Faults put into the plan of four Sparks: each breaks the path from 0 over 1 to 2 alone."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from ipaddress import IPv4Address
from typing import Any

from tetraspark.ring.plan import NodePlan, RingPlan

WRONG = "02:00:00:00:09:09"
NETDEV = "enp1s0f0np0"
CAME = "enp1s0f1np1"
TARGET = IPv4Address("10.10.1.11")


@dataclass(frozen=True)
class Mutation:
    """A changed plan, and what a walk says of it."""

    name: str
    says: str
    change: Callable[[RingPlan], RingPlan]


def on(rank: int, change: Callable[[NodePlan], NodePlan]) -> Callable[[RingPlan], RingPlan]:
    """Change the plan of one node."""

    def changed(plan: RingPlan) -> RingPlan:
        nodes = list(plan.nodes)
        nodes[rank] = change(nodes[rank])
        return replace(plan, nodes=tuple(nodes))

    return changed


def rule(**values: Any) -> Callable[[NodePlan], NodePlan]:
    """Change the relay rule of the path."""
    return lambda node: replace(
        node,
        rules=tuple(replace(one, **values) if one.netdev == CAME else one for one in node.rules),
    )


def neighbour(**values: Any) -> Callable[[NodePlan], NodePlan]:
    """Change whose card stands for the target."""
    return lambda node: replace(
        node,
        neighbours=tuple(
            replace(one, **values) if one.address == TARGET else one for one in node.neighbours
        ),
    )


def route(**values: Any) -> Callable[[NodePlan], NodePlan]:
    """Change the route to the target."""
    return lambda node: replace(
        node,
        routes=tuple(
            replace(one, **values) if one.destination == TARGET else one for one in node.routes
        ),
    )


def without(kind: str, netdev: str) -> Callable[[NodePlan], NodePlan]:
    """Drop the objects of a kind on a device."""

    def changed(node: NodePlan) -> NodePlan:
        kept: Any = tuple(one for one in getattr(node, kind) if one.netdev != netdev)
        return replace(node, **{kind: kept})

    return changed


MUTATIONS = [
    Mutation("wrong MAC at the target", "is for card", on(1, rule(new_mac=WRONG))),
    Mutation("wrong MAC at the origin", "no rule for tag", on(1, rule(source_mac=WRONG))),
    Mutation("rule missing", "no rule for tag 0x88b5", on(1, without("rules", CAME))),
    Mutation("rule sends back", "is for card", on(1, rule(redirect=CAME))),
    Mutation("tag not taken off", "no rule for tag 0x88b6", on(1, rule(new_tag=0x88B6))),
    Mutation("stale neighbour", "no rule for tag", on(0, neighbour(mac=WRONG))),
    Mutation("neighbour missing", "nobody answers", on(0, without("neighbours", NETDEV))),
    Mutation("wrong gateway", "leaves by", on(0, route(netdev=CAME))),
    Mutation("route missing", "no route", on(0, without("routes", NETDEV))),
    Mutation("marker missing", "is for 10.10.1.11", on(0, without("markers", NETDEV))),
]
