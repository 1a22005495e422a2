"""Reading the cabling of a fleet: by the wire, and by subnets where the wire shows nothing."""

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Network

from tetraspark.fabric.cabling import Cabling, Segment
from tetraspark.fabric.cabling_wire import Cage, Heard, cages_of, listen
from tetraspark.fabric.function import Function, NodeFabric


def read_cabling(nodes: Sequence[str], fabrics: Mapping[str, NodeFabric]) -> Cabling:
    """Return the cabling of a fleet: by the wire, and by subnets where the wire shows nothing."""
    cages = {cage: twins for one in fabrics.values() for cage, twins in cages_of(one).items()}
    heard = listen(nodes, fabrics)
    pairs = {(cage, far) for cage, one in heard.items() for far in one.cages}
    contradicted = {(a, b) for a, b in pairs if _denies(heard, a, b)}
    absent = tuple(node for node in nodes if node not in fabrics)
    found = _segments(heard, pairs - contradicted, whole=not absent)
    met = {cage for one in found for cage in one.ends}
    unmet = [cage for cage in heard if cage not in met]
    found += _by_subnets({cage: cages[cage] for cage in unmet})
    met = {cage for one in found for cage in one.ends}
    return Cabling(
        nodes=tuple(nodes),
        cages=cages,
        segments=tuple(sorted(found, key=lambda one: one.ends)),
        silent=tuple(sorted(cage for cage in heard if cage not in met)),
        contradicted=tuple(sorted(contradicted)),
        absent=absent,
        toward={
            cage: ", ".join(sorted(one.absent | one.strangers))
            for cage, one in heard.items()
            if cage not in met and one.absent | one.strangers
        },
    )


def _denies(heard: Mapping[Cage, Heard], cage: Cage, far: Cage) -> bool:
    """Whether a cage that is heard hears others, and not the one that hears it."""
    back = heard.get(far)
    return back is not None and bool(back.cages) and cage not in back.cages


def _segments(
    heard: Mapping[Cage, Heard], pairs: Iterable[tuple[Cage, Cage]], whole: bool
) -> list[Segment]:
    """Return the segments that the wire shows.

    A stranger that one cage alone hears is a switch only where the fleet was seen whole: else it
    may be an absent node that calls itself otherwise than the site does.
    """
    groups = _groups(heard, pairs)
    found = []
    for ends in groups:
        own = [heard[end] for end in ends if end in heard]
        switch = sorted({name for one in own for name in one.strangers})
        how = tuple(sorted({word for one in own for word in one.how}))
        if len(ends) > 1 or (switch and whole):
            found.append(Segment(tuple(sorted(ends)), ", ".join(switch), how))
    return found


def _groups(cages: Iterable[Cage], pairs: Iterable[tuple[Cage, Cage]]) -> list[set[Cage]]:
    """Return the cages that pairs join, directly or by way of others."""
    group = {cage: {cage} for cage in cages}
    for first, second in pairs:
        joined = group.get(first, {first}) | group.get(second, {second})
        for cage in joined:
            group[cage] = joined
    return [one for cage, one in group.items() if cage == min(one)]


def _by_subnets(cages: Mapping[Cage, tuple[Function, ...]]) -> list[Segment]:
    """Return the segments that addresses of silent cages suggest."""
    members: dict[IPv4Network, set[Cage]] = {}
    for cage, twins in cages.items():
        for network in (at.network for one in twins if one.up for at in one.addresses):
            members.setdefault(network, set()).add(cage)
    pairs = [(min(ends), end) for ends in members.values() for end in ends]
    groups = _groups(cages, pairs)
    return [Segment(tuple(sorted(ends)), "", ("subnets",)) for ends in groups if len(ends) > 1]
