"""Who is at the other end of a cage, as the wire itself tells: LLDP, ARP and neighbour discovery.

Both functions of a cage share its cable, and each hears both functions at the far end and the one
beside it. So evidence is of cages, and a cage's own addresses are none.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tetraspark.fabric.function import Function, LldpPeer, NodeFabric

FRESH = frozenset(("REACHABLE", "DELAY", "PROBE"))
STALE = frozenset(("STALE",))
"""States of a neighbour that was heard. A permanent one was written by somebody."""


@dataclass(frozen=True, order=True)
class Cage:
    """A socket for one cable. On a Spark, `number` 0 is the one nearest the RJ45."""

    node: str
    number: int

    def __str__(self) -> str:
        return f"{self.node} port {self.number}"


@dataclass(frozen=True)
class Heard:
    """What one cage hears: cages of the fleet, others by name, and how (`lldp`, `neighbours`).

    `absent` are nodes of the fleet that could not be looked at and are heard over LLDP.
    """

    cages: frozenset[Cage]
    strangers: frozenset[str]
    absent: frozenset[str]
    how: frozenset[str]


def cages_of(fabric: NodeFabric) -> dict[Cage, tuple[Function, ...]]:
    """Return the functions of every cage of a node."""
    return {
        Cage(fabric.node, twins[0].pci.cage if twins[0].pci else index): twins
        for index, twins in enumerate(fabric.twins())
    }


def listen(nodes: Iterable[str], fabrics: Mapping[str, NodeFabric]) -> dict[Cage, Heard]:
    """Return what every cage hears whose link is up; nothing where nothing was shown.

    LLDP frames are not passed on by a switch, so a cage of the fleet in them is the one at the
    other end; with none, the neighbour tables say who shares the wire.
    """
    names = set(nodes)
    by_mac = {
        one.mac: cage
        for fabric in fabrics.values()
        for cage, twins in cages_of(fabric).items()
        for one in twins
        if one.mac
    }
    found = {}
    for fabric in fabrics.values():
        for cage, twins in cages_of(fabric).items():
            if any(one.up for one in twins):
                devices = {one.netdev for one in twins}
                found[cage] = _heard(cage, devices, fabric, fabrics, by_mac, names)
    return found


def _heard(
    cage: Cage,
    devices: set[str],
    fabric: NodeFabric,
    fabrics: Mapping[str, NodeFabric],
    by_mac: Mapping[str, Cage],
    names: set[str],
) -> Heard:
    peers = [one for one in fabric.lldp if one.netdev in devices]
    told = {far for one in peers if (far := _lldp_cage(one, fabrics, by_mac)) and far != cage}
    others = {
        one.system.split(".")[0] or one.mac
        for one in peers
        if _lldp_cage(one, fabrics, by_mac) is None
    } - {""}
    absent = others & (names - set(fabrics))
    seen: set[Cage] = set()
    for states in (FRESH, STALE):
        seen = seen or {
            far
            for one in fabric.neighbours
            if one.netdev in devices and states & set(one.state.split())
            if (far := by_mac.get(one.mac)) and far != cage
        }
    how = {"lldp"} if peers else set()
    how |= {"neighbours"} if seen and not told else set()
    return Heard(
        cages=frozenset(told or seen),
        strangers=frozenset(others - absent),
        absent=frozenset(absent),
        how=frozenset(how),
    )


def _lldp_cage(
    peer: LldpPeer, fabrics: Mapping[str, NodeFabric], by_mac: Mapping[str, Cage]
) -> Cage | None:
    """Return the cage that sends from the other end: by its card, else by its names."""
    if peer.mac in by_mac:
        return by_mac[peer.mac]
    for fabric in fabrics.values():
        if peer.system and peer.system.split(".")[0] in (fabric.host, fabric.node):
            for cage, twins in cages_of(fabric).items():
                if peer.port in {one.netdev for one in twins}:
                    return cage
    return None
