"""Functions as NCCL's IB transport sees them: a device, its card, a subnet, and its wire."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network

from tetraspark.errors import Problem, RunError
from tetraspark.fabric.cabling import Cabling
from tetraspark.fabric.function import Function, NodeFabric

Functions = Mapping[str, tuple[Function, ...]]
"""The functions that each node gives to NCCL, by node, in rank order."""


@dataclass(frozen=True)
class Port:
    """One function as NCCL sees it.

    `card` is its PCI address without the function number: NCCL fuses ports of one card, and the
    patched library prefers devices of one. `subnet` is that of its IPv4 GID, of the prefix length
    that NCCL compares; None where it has none. `wire` names the cable or switch it is on, None
    where that was not seen.
    """

    device: str
    card: str
    subnet: IPv4Network | None
    wire: str | None

    def reaches(self, other: "Port") -> bool:
        """Whether a queue pair between the two can be set up."""
        if self.subnet is None or self.subnet != other.subnet:
            return False
        return self.wire == other.wire or None in (self.wire, other.wire)


@dataclass(frozen=True)
class RankPorts:
    """The ports of one rank, in the order in which NCCL numbers them."""

    node: str
    ports: tuple[Port, ...]


def functions_of(
    devices: Mapping[str, tuple[str, ...]], fabrics: Mapping[str, NodeFabric]
) -> dict[str, tuple[Function, ...]]:
    """Return the functions of named RDMA devices, for the nodes that were looked at.

    Raises RunError for every device that a node does not have.
    """
    found: dict[str, tuple[Function, ...]] = {}
    problems = []
    for node, names in devices.items():
        if node not in fabrics:
            continue
        known = {one.rdma: one for one in fabrics[node].functions if one.rdma}
        for name in (name for name in names if name not in known):
            fix = "correct `fabric.devices`, or `devices` of the node; rdma link lists them"
            seen = f"no RDMA device {name}; it has {', '.join(sorted(known)) or 'none'}"
            problems.append(Problem(f"{node} {name}", seen, "a device of this node", fix))
        found[node] = tuple(known[name] for name in names if name in known)
    if problems:
        raise RunError(*problems)
    return found


def ports_of(cabling: Cabling, functions: Functions, prefix: int) -> tuple[RankPorts, ...]:
    """Return the ports of every rank; `prefix` is the length that NCCL compares addresses by.

    The order is that of PCI addresses, in which the kernel lists a Spark's functions.
    """
    wires = {end: str(one) for one in cabling.segments for end in one.ends if one.on_the_wire}
    at = {
        (cage.node, one.netdev): wires.get(cage)
        for cage, twins in cabling.cages.items()
        for one in twins
    }
    return tuple(
        RankPorts(
            node,
            tuple(
                _port(one, at.get((node, one.netdev)), prefix) for one in _sorted(functions[node])
            ),
        )
        for node in cabling.nodes
        if node in functions
    )


def _sorted(functions: Sequence[Function]) -> list[Function]:
    return sorted(functions, key=lambda one: one.pci.address if one.pci else one.netdev)


def _port(one: Function, wire: str | None, prefix: int) -> Port:
    usable = one.up and one.addresses
    subnet = IPv4Network((one.addresses[0].ip, prefix), strict=False) if usable else None
    card = one.pci.address.rsplit(".", 1)[0] if one.pci else one.netdev
    return Port(one.rdma or one.netdev, card, subnet, wire)
