"""Queues: what the relaying functions are really set to, and how much that lets through."""

from collections.abc import Mapping, Sequence

from tetraspark.errors import Problem
from tetraspark.fabric.function import Function, NodeFabric
from tetraspark.ring.requirement import (
    DEFAULT_QUEUE_SIZE,
    LARGE_CAP,
    QUEUE_SIZE,
    QUEUES,
    SMALL_CAP,
    TC_OFFLOAD,
    Caps,
    QueueState,
)
from tetraspark.ring.rule import RelayRule


def caps(
    fabrics: Sequence[NodeFabric], rules: Mapping[str, Sequence[RelayRule]]
) -> tuple[Caps, list[Problem]]:
    """Return the caps of the functions that relay, and what keeps them small.

    `rules` are by node. A value that waits for a driver reload is not in effect, whatever devlink
    shows as set; what could not be seen counts for the smaller cap and is told.
    """
    states = []
    for fabric in fabrics:
        for netdev in sorted(_relaying(rules[fabric.node])):
            function = fabric.function(netdev)
            assert function is not None, "the plan was made from these functions"
            states.append(_state(fabric.node, function))
    now = min((_cap(one) for one in states), default=LARGE_CAP)
    found = Caps(now=now, after=LARGE_CAP, queues=tuple(states))
    return found, _warnings([one for one in states if one.verdict != "in effect"])


def _relaying(rules: Sequence[RelayRule]) -> set[str]:
    return {netdev for rule in rules for netdev in (rule.netdev, rule.redirect)}


def _state(node: str, function: Function) -> QueueState:
    """Judge one function by its parameters, its reloads, and whether it offloads at all."""
    hairpin = function.hairpin
    if hairpin is None or hairpin.queue_size is None or hairpin.queues is None:
        return QueueState(node, function.netdev, "unknown", None, "devlink shows no hairpin queues")
    size, queues = hairpin.queue_size, hairpin.queues
    seen = f"hairpin_queue_size {size}, hairpin_num_queues {queues}"
    if hairpin.pending is None:
        seen += "; not shown whether the driver was reloaded since"
        return QueueState(node, function.netdev, "unknown", None, seen)
    if hairpin.pending and size != DEFAULT_QUEUE_SIZE:
        why = "the last reload failed" if hairpin.reload_failed else "no reload since the boot"
        return _pending(node, function, f"{seen}; {why}")
    if function.tc_offload != TC_OFFLOAD:
        seen += f"; hw-tc-offload {function.tc_offload or 'not shown'}"
        return _pending(node, function, seen)
    if size < QUEUE_SIZE or queues < QUEUES:
        return QueueState(node, function.netdev, "default", size, seen)
    return QueueState(node, function.netdev, "in effect", size, seen)


def _pending(node: str, function: Function, seen: str) -> QueueState:
    return QueueState(node, function.netdev, "pending", DEFAULT_QUEUE_SIZE, seen)


def _cap(state: QueueState) -> int:
    """Return the cap of one function: none was ever measured below the default size."""
    if state.verdict == "in effect":
        return LARGE_CAP
    return 0 if state.size is not None and state.size < DEFAULT_QUEUE_SIZE else SMALL_CAP


def _warnings(small: Sequence[QueueState]) -> list[Problem]:
    """Return one warning for all functions of which the same was seen."""
    alike: dict[tuple[str, str, int], list[str]] = {}
    for one in small:
        alike.setdefault((one.seen, one.verdict, _cap(one)), []).append(f"{one.node} {one.netdev}")
    return [
        Problem(
            ", ".join(names),
            f"{seen} ({verdict})",
            f"hairpin_queue_size {QUEUE_SIZE} and hairpin_num_queues {QUEUES} in effect; "
            f"until then at most {cap} bytes may cross a relay",
            "with the line stopped and no plan applied: tetraspark ring apply PLAN --hairpin; "
            f"then plan again: the cap becomes {LARGE_CAP}",
        )
        for (seen, verdict, cap), names in alike.items()
    ]
