"""Paths of every pair: which way round, over which half, through which relays."""

from collections.abc import Sequence
from itertools import combinations

from tetraspark.errors import Problem
from tetraspark.ring.member import Cable, Member
from tetraspark.ring.path import Path, Relay
from tetraspark.ring.tag import MAX_RELAYS

PREFERRED = ((0, 1), (1, 0))
"""Halves of opposite nodes, up and down: a rank's two ways are on two PCIe links.

Both ways of a pair on one half would load the cables' halves evenly, and a rank's own two frames
would share one PCIe x4 link.
"""

Way = tuple[int, ...]
"""Cables in the order in which the lower rank's frames cross them."""


def find_paths(
    members: Sequence[Member], cables: Sequence[Cable]
) -> tuple[tuple[Path, ...], list[Problem]]:
    """Return both directions of every lane of every pair, and the pairs that have none.

    Neighbours use every half of their cable, others every half of the shorter way; where both
    ways are equally long, one lane goes each way, on different halves. With one half alone a pair
    has one lane: a second would share its PCIe link.
    """
    by_number = {one.number: one for one in cables}
    found: list[Path] = []
    problems = []
    for low, high in combinations(range(len(members)), 2):
        lanes = _lanes(low, high, len(members), by_number)
        if not lanes:
            who = f"{members[low].node} and {members[high].node}"
            seen = "no way between them that one half of every cage on it can take"
            problems.append(Problem(who, seen, "one", "restore a cable or a function"))
        for lane, (way, half) in enumerate(lanes):
            found.append(_path(members, low, high, lane, half, way))
            found.append(_path(members, high, low, lane, half, way[::-1]))
    return tuple(sorted(found, key=lambda one: (one.source, one.target, one.lane))), problems


def _lanes(low: int, high: int, world: int, cables: dict[int, Cable]) -> list[tuple[Way, int]]:
    """Return the ways and halves of a pair's lanes, ordered by half."""
    up = tuple(range(low, high))
    down = tuple(number % world for number in range(low - 1 + world, high - 1, -1))
    ways = [way for way in (up, down) if len(way) <= MAX_RELAYS + 1 and _halves(way, cables)]
    if not ways:
        return []
    shortest = min(map(len, ways))
    ways = [way for way in ways if len(way) == shortest]
    if len(ways) == 1:
        return [(ways[0], half) for half in sorted(_halves(ways[0], cables))]
    free = tuple(_halves(way, cables) for way in ways)
    for chosen in PREFERRED:
        if chosen[0] in free[0] and chosen[1] in free[1]:
            return sorted(zip(ways, chosen, strict=True), key=lambda lane: lane[1])
    # In turn, so that not all pairs go the same way round.
    turn = low % 2
    return [(ways[turn], min(free[turn]))]


def _halves(way: Way, cables: dict[int, Cable]) -> frozenset[int]:
    """Return the halves that every cable of a way has; a relay never changes the half."""
    if any(number not in cables for number in way):
        return frozenset()
    return frozenset.intersection(*(cables[number].halves for number in way))


def _path(
    members: Sequence[Member], source: int, target: int, lane: int, half: int, way: Way
) -> Path:
    """Follow a way from one rank to another."""
    world = len(members)
    step = 1 if way[0] == source else -1
    ranks = [(source + step * i) % world for i in range(len(way) + 1)]
    out = [members[rank].at(cable, half) for rank, cable in zip(ranks, way, strict=False)]
    into = [members[rank].at(cable, half) for rank, cable in zip(ranks[1:], way, strict=True)]
    relays = tuple(
        Relay(rank, came.netdev, goes.netdev)
        for rank, came, goes in zip(ranks[1:-1], into, out[1:], strict=False)
    )
    return Path(
        source=source,
        target=target,
        lane=lane,
        half=half,
        cables=way,
        netdev=out[0].netdev,
        address=out[0].address,
        gateway=into[0].address,
        relays=relays,
        target_netdev=into[-1].netdev,
        target_address=into[-1].address,
    )
