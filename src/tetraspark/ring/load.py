"""Load: how much of a pattern's traffic each function carries, computed from the paths alone."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tetraspark.ring.path import Path
from tetraspark.ring.plan import RingPlan

Edge = tuple[int, int, int]
"""Cable, half, and the rank whose frames enter it."""


@dataclass(frozen=True)
class Share:
    """What a degraded plan has left of the whole ring's bandwidth, for two patterns.

    Ratios of the busiest function's load, both directions of a link counting alone. Computed from
    the paths; nothing was measured. `one_way` is a ring all-reduce in one sense, `both_ways` two
    of them in opposite senses with half of the data each, `exchange` every rank sending the same
    to every other.
    """

    one_way: Fraction
    both_ways: Fraction
    exchange: Fraction


def loads(paths: Iterable[Path], pairs: Sequence[tuple[int, int]]) -> dict[Edge, Fraction]:
    """Return the load of every edge when each ordered pair sends one unit over all its lanes."""
    by_pair: dict[tuple[int, int], list[Path]] = {}
    for path in paths:
        by_pair.setdefault((path.source, path.target), []).append(path)
    found: dict[Edge, Fraction] = {}
    for pair in pairs:
        lanes = by_pair[pair]
        for path in lanes:
            for cable, rank in zip(path.cables, path.ranks, strict=False):
                edge = (cable, path.half, rank)
                found[edge] = found.get(edge, Fraction(0)) + Fraction(1, len(lanes))
    return found


def forwarded(plan: RingPlan) -> dict[tuple[int, int], int]:
    """Return how many relayed paths cross each cable and half, both directions together."""
    found: Counter[tuple[int, int]] = Counter()
    for path in plan.paths:
        if path.relays:
            found.update((cable, path.half) for cable in path.cables)
    return dict(found)


def share(whole: RingPlan, degraded: RingPlan) -> Share:
    """Compare a degraded plan with the whole one of the same nodes."""
    world = len(whole.members)
    forth = [(rank, (rank + 1) % world) for rank in range(world)]
    back = [(two, one) for one, two in forth]
    everyone = [(one, two) for one in range(world) for two in range(world) if one != two]
    return Share(*(_ratio(whole, degraded, pairs) for pairs in (forth, forth + back, everyone)))


def busiest(plan: RingPlan, pairs: Sequence[tuple[int, int]]) -> Fraction:
    """Return the load of the busiest edge."""
    return max(loads(plan.paths, pairs).values())


def _ratio(whole: RingPlan, degraded: RingPlan, pairs: Sequence[tuple[int, int]]) -> Fraction:
    return busiest(whole, pairs) / busiest(degraded, pairs)
