"""Objects: the routes, neighbours, relay rules and markers that make the paths real."""

from collections.abc import Sequence

from tetraspark.ring.marker import Mark, Marker
from tetraspark.ring.member import Member, RingFunction
from tetraspark.ring.path import Path
from tetraspark.ring.route import HostRoute, PermanentNeighbour
from tetraspark.ring.rule import RelayRule
from tetraspark.ring.tag import tag


def routes(rank: int, paths: Sequence[Path]) -> tuple[HostRoute, ...]:
    """Return a rank's routes to the addresses that are behind relays."""
    return tuple(
        HostRoute(path.target_address, path.netdev, path.address)
        for path in _relayed(paths)
        if path.source == rank
    )


def neighbours(
    rank: int, paths: Sequence[Path], members: Sequence[Member]
) -> tuple[PermanentNeighbour, ...]:
    """Return whose card stands for each of those addresses: the first relay's."""
    return tuple(
        PermanentNeighbour(path.target_address, path.netdev, _into(path, members)[0].mac)
        for path in _relayed(paths)
        if path.source == rank
    )


def rules(rank: int, paths: Sequence[Path], members: Sequence[Member]) -> tuple[RelayRule, ...]:
    """Return what a rank relays for others, one rule for each path through it."""
    found = []
    for path in _relayed(paths):
        into = _into(path, members)
        for hop, relay in enumerate(path.relays, start=1):
            if relay.rank == rank:
                left = len(path.relays) - hop + 1
                found.append(
                    RelayRule(
                        netdev=relay.netdev_in,
                        tag=tag(left),
                        hop=hop,
                        source_mac=members[path.source].function(path.netdev).mac,
                        destination_mac=into[hop - 1].mac,
                        new_tag=tag(left - 1),
                        new_mac=into[hop].mac,
                        redirect=relay.netdev_out,
                    )
                )
    return tuple(sorted(found, key=lambda one: (one.netdev, one.preference, one.handle)))


def markers(rank: int, paths: Sequence[Path], members: Sequence[Member]) -> tuple[Marker, ...]:
    """Return a rank's markers, one a device."""
    marks: dict[str, list[Mark]] = {}
    for path in _relayed(paths):
        if path.source == rank:
            marks.setdefault(path.netdev, []).append(Mark(path.target_address, len(path.relays)))
    return tuple(
        Marker(one.rdma, one.netdev, tuple(marks[one.netdev]))
        for one in members[rank].functions
        if one.netdev in marks
    )


def _relayed(paths: Sequence[Path]) -> list[Path]:
    return [path for path in paths if path.relays]


def _into(path: Path, members: Sequence[Member]) -> list[RingFunction]:
    """Return the functions that a path comes in on, relay by relay and at the target."""
    places = [(relay.rank, relay.netdev_in) for relay in path.relays]
    places.append((path.target, path.target_netdev))
    return [members[rank].function(netdev) for rank, netdev in places]
