"""What broken lanes mean: a pure judgement over what one rank knows of its lanes and ports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tetraspark.collectives.failure import Kind
from tetraspark.collectives.transport import Finding

GATHER_S = 0.15
"""A dead peer breaks all of its lanes, not at the same instant: so long is waited for the rest."""


@dataclass(frozen=True)
class BrokenLane:
    """A lane that failed `since_s` ago. `cause` is the device's word for it.

    `own_fault` says what is wrong with this rank's own port, "" when nothing is.
    """

    peer: int
    lane: int
    device: str
    since_s: float
    cause: str
    own_fault: str


@dataclass(frozen=True)
class LaneMap:
    """How a rank is wired: the lanes to each peer, and the peers behind each own device."""

    rank: int
    lanes_to: Mapping[int, int]
    behind: Mapping[str, frozenset[int]]


def judge_lanes(
    wired: LaneMap, broken: Sequence[BrokenLane], closed: frozenset[int]
) -> Finding | None:
    """Return the verdict, None while there is none.

    An own port that is down explains its lanes and comes first, then an own device that reaches
    none of several peers. A peer that closed has no lanes that matter.
    """
    matter = sorted((one for one in broken if one.peer not in closed), key=lambda one: -one.since_s)
    for one in matter:
        if one.own_fault:
            return Finding(
                Kind.PORT, wired.rank, one.lane, f"{one.device}: {one.own_fault} ({one.cause})"
            )
    if not matter or matter[0].since_s < GATHER_S:
        return None
    first = matter[0]
    text = f"{first.device}: {first.cause}"
    lost = {one.peer for one in matter if one.device == first.device}
    if len(lost) > 1 and lost == wired.behind[first.device] - closed:
        detail = f"{text}; it reaches none of its {len(lost)} peers"
        return Finding(Kind.PORT, wired.rank, first.lane, detail)
    mates = [one for one in matter if one.peer == first.peer]
    if len(mates) < wired.lanes_to[first.peer]:
        return Finding(Kind.LANE, first.peer, first.lane, text)
    if len(mates) == 1:
        return Finding(Kind.LANE, first.peer, first.lane, f"{text}; it is the only lane to it")
    words = ", ".join(str(one.lane) for one in sorted(mates, key=lambda one: one.lane))
    detail = f"lanes {words} to it have all failed: its process or its node is gone; {text}"
    return Finding(Kind.DEAD, first.peer, first.lane, detail)
