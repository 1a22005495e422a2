"""What broken lanes mean: a pure judgement over what one rank knows of its lanes and ports."""

from collections.abc import Sequence
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


def judge_lanes(
    rank: int, lanes_to: dict[int, int], broken: Sequence[BrokenLane], closed: frozenset[int]
) -> Finding | None:
    """Return the verdict, None while there is none; `lanes_to` counts each peer's lanes.

    An own port that is down explains its lanes and comes first. A peer that closed has none that
    matter.
    """
    matter = sorted((one for one in broken if one.peer not in closed), key=lambda one: -one.since_s)
    for one in matter:
        if one.own_fault:
            return Finding(
                Kind.PORT, rank, one.lane, f"{one.device}: {one.own_fault} ({one.cause})"
            )
    if not matter or matter[0].since_s < GATHER_S:
        return None
    first = matter[0]
    text = f"{first.device}: {first.cause}"
    mates = [one for one in matter if one.peer == first.peer]
    if len(mates) < lanes_to[first.peer]:
        return Finding(Kind.LANE, first.peer, first.lane, text)
    if len(mates) == 1:
        return Finding(Kind.LANE, first.peer, first.lane, f"{text}; it is the only lane to it")
    words = ", ".join(str(one.lane) for one in sorted(mates, key=lambda one: one.lane))
    detail = f"lanes {words} to it have all failed: its process or its node is gone; {text}"
    return Finding(Kind.DEAD, first.peer, first.lane, detail)
