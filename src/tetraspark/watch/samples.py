"""Samples of an observation from what ranks, nodes and communicators said. Pure."""

from collections.abc import Mapping
from typing import Any

from tetraspark.fleet.meminfo import Memory
from tetraspark.line.ranks import RankStatus
from tetraspark.watch.observation import LaneSample, RankSample


def rank_sample(status: RankStatus, memory: Memory | None) -> RankSample:
    """Return the sample of one rank; `memory` is its node's, None where it is not known."""
    told = status.collectives or {}
    operations = told.get("operations")
    return RankSample(
        rank=status.rank,
        node=status.node,
        state=status.state,
        detail=status.detail,
        operations=operations if isinstance(operations, int) else None,
        lanes=lanes_of(told),
        memory_free=memory.free if memory else None,
        memory_available=memory.available if memory else None,
        page_cache=memory.cached if memory else None,
        collective=told.get("verdict"),
        late=tuple((one["rank"], one["late"]["count"]) for one in told.get("peers", ())),
    )


def lanes_of(told: Mapping[str, Any]) -> tuple[LaneSample, ...]:
    """Return the lanes of a communicator's state; what its transport does not tell is 0 or up."""
    details = told.get("details") or {}
    cards = {(one["peer"], one["lane"]): one for one in details.get("lanes", ())}
    return tuple(
        _lane(peer["rank"], lane, cards.get((peer["rank"], lane["lane"]), {}), told)
        for peer in told.get("peers", ())
        for lane in peer["lanes"]
    )


def _lane(
    peer: int, lane: Mapping[str, Any], card: Mapping[str, Any], told: Mapping[str, Any]
) -> LaneSample:
    return LaneSample(
        peer=peer,
        lane=lane["lane"],
        device=card.get("device", told["transport"]),
        bytes=lane["bytes"],
        writes=lane["writes"],
        errors=card.get("failures", 0),
        state="down" if card.get("broken") else "up",
    )


def root_of(told: Mapping[str, Any] | None) -> tuple[int, str] | None:
    """Return the rank that a communicator names as the cause of its failure, and its words."""
    root = (told or {}).get("root")
    return (root["peer"], f"{root['kind']}: {root['detail']}") if root else None
