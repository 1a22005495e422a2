"""What broken lanes mean: a pure judgement over what one rank knows of its lanes and ports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tetraspark.collectives.failure import Kind
from tetraspark.collectives.transport import Finding

GATHER_S = 0.15
"""A dead peer breaks all of its lanes, not at the same instant: so long is waited for the rest."""


@dataclass(frozen=True)
class BrokenLane:
    """A lane that failed `since_s` ago. `cause` is the device's word for it.

    `own_fault` says what is wrong with this rank's own port, "" when nothing is. `stuck`: it could
    not be stopped, so nothing may take its place.
    """

    peer: int
    lane: int
    device: str
    since_s: float
    cause: str
    own_fault: str
    stuck: bool = False


@dataclass(frozen=True)
class LaneMap:
    """How a rank is wired: the lanes to each peer, and the peers behind each own device.

    `needed`: how many lanes to a peer must work; a peer that is not named needs all of them.
    """

    rank: int
    lanes_to: Mapping[int, int]
    behind: Mapping[str, frozenset[int]]
    needed: Mapping[int, int] = field(default_factory=dict)

    def spare(self, peer: int) -> int:
        """Return how many lanes to a peer may be broken."""
        return self.lanes_to[peer] - self.needed.get(peer, self.lanes_to[peer])

    def short_since(self, peer: int, broken: Sequence[BrokenLane]) -> float | None:
        """Return for how many seconds a peer has had too few lanes, None while it has enough."""
        mates = sorted((one for one in broken if one.peer == peer), key=lambda one: -one.since_s)
        stuck = max((one.since_s for one in mates if one.stuck), default=None)
        return mates[self.spare(peer)].since_s if len(mates) > self.spare(peer) else stuck


def judge_lanes(
    wired: LaneMap, broken: Sequence[BrokenLane], closed: frozenset[int]
) -> Finding | None:
    """Return the verdict, None while there is none.

    An own port that is down explains its lanes and comes first, then an own device that reaches
    none of several peers. Neither a peer that closed nor one with lanes enough has lanes that
    matter.
    """
    short = {one.peer: wired.short_since(one.peer, broken) for one in broken}
    lanes = sorted(broken, key=lambda one: -one.since_s)
    matter = [one for one in lanes if one.peer not in closed and short[one.peer] is not None]
    for one in matter:
        if one.own_fault:
            return Finding(
                Kind.PORT, wired.rank, one.lane, f"{one.device}: {one.own_fault} ({one.cause})"
            )
    if not matter or max(short[one.peer] or 0.0 for one in matter) < GATHER_S:
        return None
    first = max(matter, key=lambda one: short[one.peer] or 0.0)
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
