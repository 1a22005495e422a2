"""Networks: one /24 for each cable and half, and whether they are free on every node."""

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Interface, IPv4Network, ip_network

from tetraspark.errors import Problem
from tetraspark.fabric.function import NodeFabric
from tetraspark.ring.member import Member
from tetraspark.ring.route import PROTOCOL

PREFIX = 24
LOWER_HOST, UPPER_HOST = 10, 11
"""The last byte of an address at the lower end of a cable, and at the upper one."""

BENCHMARKS = IPv4Network("198.18.0.0/15")
FIX = "choose other networks with --base"


def check_bases(bases: Sequence[IPv4Network], halves: int, cables: int) -> list[Problem]:
    """Return why the bases cannot give every cable and half a network of its own."""
    found = []
    if len(bases) < halves:
        seen = f"{len(bases)} base network{'' if len(bases) == 1 else 's'}"
        wanted = f"{halves}, one for each function of a cage: --base once for each"
        found.append(Problem("--base", seen, wanted, FIX))
    for base in bases:
        if base.prefixlen > PREFIX or base.num_addresses >> (32 - PREFIX) < cables:
            wanted = f"room for {cables} networks of /{PREFIX}"
            found.append(Problem("--base", str(base), wanted, FIX))
    for number, base in enumerate(bases):
        for other in bases[:number]:
            if base.overlaps(other):
                wanted = "networks that do not overlap"
                found.append(Problem("--base", f"{other} and {base}", wanted, FIX))
    return found


def network(base: IPv4Network, cable: int) -> IPv4Network:
    """Return a cable's /24 of a base."""
    first = int(base.network_address) + (cable << (32 - PREFIX))
    return IPv4Network((first, PREFIX))


def interface(net: IPv4Network, lower: bool) -> IPv4Interface:
    """Return the address of one end of a cable in its network."""
    host = net.network_address + (LOWER_HOST if lower else UPPER_HOST)
    return IPv4Interface(f"{host}/{net.prefixlen}")


def conflicts(
    fabric: NodeFabric, member: Member, planned: Sequence[IPv4Network]
) -> tuple[list[Problem], list[Problem]]:
    """Return what refuses the plan on a node, and what only has to be said.

    An address or route of ours may be there already. Another address in a planned network, on
    whichever device, would answer for the wrong cable.
    """
    problems = []
    warnings = []
    own = {one.netdev: one.interface for one in member.functions}
    for netdev, address in _addresses(fabric):
        where = f"{fabric.node} {netdev}"
        hit = next((net for net in planned if net.overlaps(address.network)), None)
        if address == own.get(netdev):
            continue
        if hit is not None:
            name = "management address" if netdev == fabric.management else "address"
            fix = f"sudo ip addr del {address} dev {netdev}" if netdev in own else FIX
            wanted = f"nothing else in {hit}, which the plan gives to a cable"
            problems.append(Problem(where, f"{name} {address}", wanted, fix))
        elif netdev in own:
            fix = f"find it: grep -r {address.ip} /etc/netplan /etc/NetworkManager"
            seen = f"address {address}, which is not the plan's"
            warnings.append(Problem(where, seen, f"{own[netdev]} alone", fix))
    for where, net, seen in _routes(fabric, set(own)):
        hit = next((one for one in planned if one.overlaps(net)), None)
        if hit is not None:
            wanted = f"no other route that covers {hit}"
            problems.append(Problem(where, seen, wanted, FIX))
    return problems, warnings


def _addresses(fabric: NodeFabric) -> Iterator[tuple[str, IPv4Interface]]:
    for one in fabric.functions:
        for address in one.addresses:
            yield one.netdev, address


def _routes(fabric: NodeFabric, own: set[str]) -> Iterator[tuple[str, IPv4Network, str]]:
    """Yield the routes that are neither a default, nor ours, nor of an address told above."""
    told = {one.netdev for one in fabric.functions if one.addresses}
    for route in fabric.routes:
        if route.destination == "default" or ":" in route.destination:
            continue
        net = ip_network(route.destination, strict=False)
        ours = route.protocol == str(PROTOCOL) and route.netdev in own
        connected = route.protocol == "kernel" and route.netdev in told
        if isinstance(net, IPv4Network) and net.prefixlen and not ours and not connected:
            via = f" via {route.gateway}" if route.gateway else ""
            seen = f"route to {route.destination}{via}, made by {route.protocol or 'nobody known'}"
            yield f"{fabric.node} {route.netdev}", net, seen


def doubtful(bases: Sequence[IPv4Network]) -> list[Problem]:
    """Return the bases that work and are better left alone."""
    return [
        Problem(
            "--base",
            f"{base} is in {BENCHMARKS}, which local proxies answer DNS queries from",
            "a private network",
            FIX,
        )
        for base in bases
        if base.overlaps(BENCHMARKS)
    ]
