"""Lanes: the plan as the collectives see it, device to device between every pair of ranks."""

from itertools import combinations

from tetraspark.collectives.local_lane import Choice
from tetraspark.collectives.wiring import Ends, Wiring
from tetraspark.ring.plan import RingPlan


def wiring(plan: RingPlan) -> Wiring:
    """Return the wiring of a plan's lanes; devices are in the members' order, with addresses.

    Neighbours have a lane for each half of their cable. Opposite nodes have one through each
    neighbour, which relays, so a lane's two ends are on different cages.
    """
    index = {
        (member.rank, one.netdev): number
        for member in plan.members
        for number, one in enumerate(member.functions)
    }
    pairs: dict[tuple[int, int], list[Ends]] = {
        pair: [] for pair in combinations(range(len(plan.members)), 2)
    }
    # Paths are in order of their lanes, so both ends number them alike.
    for path in plan.paths:
        if path.source < path.target:
            own = index[path.source, path.netdev]
            far = index[path.target, path.target_netdev]
            pairs[path.source, path.target].append((own, far))
    return Wiring(
        nodes=tuple(member.node for member in plan.members),
        devices=tuple(
            tuple(Choice(one.rdma, address=one.address) for one in member.functions)
            for member in plan.members
        ),
        pairs=tuple((pair, tuple(ends)) for pair, ends in pairs.items()),
    )
