"""Lanes as they are shown: each sending end by itself, and both ends together as one lane."""

from collections.abc import Mapping
from dataclasses import dataclass

from tetraspark.watch.observation import LaneSample, Observation, RankSample
from tetraspark.watch.page.lane_rates import Lane

UP = "up"


@dataclass(frozen=True)
class LaneEnd:
    """One lane as its sending rank counts it; `rate` is bytes a second, None where not known."""

    source: RankSample
    target: str
    sample: LaneSample
    rate: float | None

    @property
    def up(self) -> bool:
        """Whether its rank sends over it."""
        return self.sample.state == UP


@dataclass(frozen=True)
class LanePair:
    """One lane between two ranks, `low` before `high`: one or two ends."""

    low: int
    high: int
    lane: int
    ends: tuple[LaneEnd, ...]

    @property
    def up(self) -> bool:
        """Whether every end that is told of is up."""
        return all(end.up for end in self.ends)

    @property
    def rate(self) -> float | None:
        """Bytes a second in both directions, None where no end has a rate."""
        known = [end.rate for end in self.ends if end.rate is not None]
        return sum(known) if known else None


def lane_ends(seen: Observation, rates: Mapping[Lane, float]) -> tuple[LaneEnd, ...]:
    """Return every lane of every rank, in the order of the observation."""
    names = {rank.rank: rank.node for rank in seen.ranks}
    return tuple(
        LaneEnd(
            source=rank,
            target=names.get(lane.peer, f"rank {lane.peer}"),
            sample=lane,
            rate=rates.get((rank.rank, lane.peer, lane.lane)),
        )
        for rank in seen.ranks
        for lane in rank.lanes
    )


def lane_pairs(ends: tuple[LaneEnd, ...]) -> tuple[LanePair, ...]:
    """Put the ends of one lane together, by the two ranks and the lane's number."""
    found: dict[Lane, list[LaneEnd]] = {}
    for end in ends:
        low, high = sorted((end.source.rank, end.sample.peer))
        found.setdefault((low, high, end.sample.lane), []).append(end)
    return tuple(LanePair(*key, tuple(several)) for key, several in sorted(found.items()))
