"""Checks of the addresses on the cables: what belongs together, and whether the wire agrees."""

from collections.abc import Mapping
from ipaddress import IPv4Network

from tetraspark.doctor.check import Check, Verdict
from tetraspark.fabric.cabling import Cabling, Segment
from tetraspark.fabric.cabling_checks import SHOW, described, pairs
from tetraspark.fabric.cabling_moves import Pair, moves
from tetraspark.fabric.cabling_wire import Cage
from tetraspark.fabric.function import Function

Holder = tuple[Cage, Function]


def subnet_checks(cabling: Cabling, switched: bool) -> list[Check]:
    """Return the checks of a fleet's fabric addresses; `switched` says what the site wants."""
    networks = _networks(cabling)
    checks = [*_addresses(cabling, networks), *_twins(networks), *_clashes(networks)]
    if not switched:
        checks += [_flat(networks), *_ends(cabling, networks), _agreement(cabling, networks)]
    return checks


def _networks(cabling: Cabling) -> dict[IPv4Network, list[Holder]]:
    found: dict[IPv4Network, list[Holder]] = {}
    for cage, twins in cabling.cages.items():
        for one in twins:
            for address in one.addresses:
                found.setdefault(address.network, []).append((cage, one))
    return found


def _addresses(cabling: Cabling, networks: dict[IPv4Network, list[Holder]]) -> list[Check]:
    """Every function with a link needs an IPv4 address: without one its GID is empty."""
    wanted = "an IPv4 address on every function whose link is up"
    bare = [(cage, one) for cage, twins in cabling.cages.items()
            for one in twins if one.up and not one.addresses]  # fmt: skip
    if not bare:
        seen = f"{sum(map(len, networks.values()))} addresses in {len(networks)} subnets"
        return [Check("CABLING.ADDRESS", None, "ok", seen, wanted)]
    return [
        Check(
            *("CABLING.ADDRESS", cage.node, "failed"),
            observed=f"{one.label} is up and has no IPv4 address, so RDMA cannot use it",
            wanted=wanted,
            fix=f"give {one.netdev} an address in a subnet of its own, in a file of /etc/netplan",
        )
        for cage, one in bare
    ]


def _twins(networks: dict[IPv4Network, list[Holder]]) -> list[Check]:
    """Both functions of a cage in one subnet: answers come back by whichever the kernel likes."""
    wanted = "the two functions of a cage in two subnets"
    found = []
    for network, holders in networks.items():
        for cage in sorted({cage for cage, _ in holders}):
            own = [one.netdev for at, one in holders if at == cage]
            if len(own) > 1:
                found.append((cage, network, own))
    if not found:
        return [Check("CABLING.TWINS", None, "ok", "no cage with one subnet twice", wanted)]
    return [
        Check(
            *("CABLING.TWINS", cage.node, "failed"),
            observed=f"{' and '.join(own)} of {cage} are both in {network}",
            wanted=wanted,
            fix=f"move {own[-1]} at both ends of the cable to another subnet",
        )
        for cage, network, own in found
    ]


def _clashes(networks: dict[IPv4Network, list[Holder]]) -> list[Check]:
    """One address on two ports, and subnets that contain one another."""
    wanted = "every address once, and subnets apart from each other"
    holders: dict[str, list[str]] = {}
    for network in networks.values():
        for cage, one in network:
            for address in one.addresses:
                holders.setdefault(str(address.ip), []).append(f"{cage.node} {one.netdev}")
    found = [
        Check("CABLING.DUPLICATE", None, "failed", f"{address} is on {' and '.join(names)}",
              wanted, f"ip addr del {address}/LENGTH dev DEVICE on the wrong one")
        for address, names in holders.items() if len(set(names)) > 1
    ]  # fmt: skip
    ordered = sorted(networks)
    for number, first in enumerate(ordered):
        for second in ordered[number + 1 :]:
            if first.overlaps(second):
                seen = f"{first} and {second} overlap"
                fix = "give both ends of every cable one prefix length and a subnet of its own"
                found.append(Check("CABLING.DUPLICATE", None, "failed", seen, wanted, fix))
    return found or [Check("CABLING.DUPLICATE", None, "ok", "none twice", wanted)]


def _flat(networks: dict[IPv4Network, list[Holder]]) -> Check:
    """One subnet over all cables leaves the kernel and NCCL nothing to choose a port by."""
    wanted = "a subnet for every cable and function"
    cages = {network: {cage for cage, _ in holders} for network, holders in networks.items()}
    flat = [network for network, members in cages.items() if len(members) > 2]
    if not flat:
        return Check("CABLING.FLAT", None, "ok", f"{len(networks)} subnets", wanted)
    seen = "; ".join(f"{network} is on {len(cages[network])} ports" for network in flat)
    fix = "tetraspark ring plan gives every cable and function a subnet"
    return Check("CABLING.FLAT", None, "failed", seen, wanted, fix)


def _ends(cabling: Cabling, networks: dict[IPv4Network, list[Holder]]) -> list[Check]:
    """Exactly two ends a subnet, of two nodes; an absent node may well hold the second one."""
    wanted = "two ends in every subnet, on two nodes"
    odd = {network: holders for network, holders in networks.items()
           if len(holders) != 2 or len({cage.node for cage, _ in holders}) != 2}  # fmt: skip
    found = []
    for network, holders in sorted(odd.items()):
        names = ", ".join(f"{cage.node} {one.netdev}" for cage, one in holders)
        alone = len(holders) == 1 and bool(cabling.absent)
        verdict: Verdict = "unknown" if alone else "failed"
        fix = SHOW if alone else f"correct the addresses of {names}"
        seen = f"{network} has {len(holders)}: {names}"
        found.append(Check("CABLING.ENDS", None, verdict, seen, wanted, fix))
    seen = f"{len(networks)} subnets with two ends each"
    return found or [Check("CABLING.ENDS", None, "ok", seen, wanted)]


def _agreement(cabling: Cabling, networks: dict[IPv4Network, list[Holder]]) -> Check:
    """Whether cages that share subnets are those that share a cable."""
    wanted = "cables that join the cages whose addresses belong together"
    if not any(one.on_the_wire for one in cabling.segments):
        seen = "nothing was seen on the wire"
        return Check("CABLING.SUBNETS", None, "unknown", seen, wanted, SHOW)
    segment = {end: one for one in cabling.segments if one.on_the_wire for end in one.ends}
    wrong = {
        network: (first, second)
        for network, holders in networks.items()
        if len({cage for cage, _ in holders}) == 2
        for first, second in [sorted({cage for cage, _ in holders})]
        if _apart(segment, first, second)
    }
    if not wrong:
        seen = f"{len(set(segment.values()))} cables, as far as seen, are as their addresses say"
        return Check("CABLING.SUBNETS", None, "ok", seen, wanted)
    ends = sorted({end for pair in wrong.values() for end in pair if end in segment})
    told = "; ".join(dict.fromkeys(f"the wire joins {segment[end]}" for end in ends))
    said = "; ".join(f"{network} is on {a} and {b}" for network, (a, b) in wrong.items())
    named = [pair for pair in _paired(networks) if set(pair) & set(ends)]
    change = "change the addresses to fit the cables"
    fix = f"{described(moves(pairs(cabling), named))}, or {change}" if named else change
    return Check("CABLING.SUBNETS", None, "failed", f"{told}; but {said}", wanted, fix)


def _apart(segment: Mapping[Cage, Segment], first: Cage, second: Cage) -> bool:
    """Whether the wire shows that two cages are not joined."""
    known = [segment[one] for one in (first, second) if one in segment]
    return bool(known) and any({first, second} - set(one.ends) for one in known)


def _paired(networks: dict[IPv4Network, list[Holder]]) -> list[Pair]:
    """Return the cages that share subnets, two and two; subnets that say else are left out."""
    found: dict[Cage, set[Cage]] = {}
    for holders in networks.values():
        cages = {cage for cage, _ in holders}
        if len(cages) == 2:
            first, second = sorted(cages)
            found.setdefault(first, set()).add(second)
            found.setdefault(second, set()).add(first)
    return [
        (cage, min(far))
        for cage, far in sorted(found.items())
        if len(far) == 1 and cage < min(far) and found[min(far)] == {cage}
    ]
