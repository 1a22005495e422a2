"""Ends: the cages that a plan may use, with the functions behind each, and what is wrong there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tetraspark.errors import Problem
from tetraspark.fabric.cabling_wire import Cage, cages_of
from tetraspark.fabric.function import Function, NodeFabric
from tetraspark.ring.mac import is_card
from tetraspark.ring.options import RingOptions

SHOW = "tetraspark fabric show"


@dataclass(frozen=True)
class End:
    """A cage of a rank, with its functions that may be used, by PCI domain."""

    rank: int
    cage: Cage
    functions: tuple[Function, ...]

    @property
    def node(self) -> str:
        """The node's name."""
        return self.cage.node

    def of_domain(self, domain: int) -> Function | None:
        """Return the function in a PCI domain, or None."""
        return next((one for one in self.functions if domain_of(one) == domain), None)

    def __str__(self) -> str:
        return str(self.cage)


def domain_of(function: Function) -> int | None:
    """Return the PCI domain, or None for a device that is not on PCI."""
    return function.pci.domain if function.pci else None


def find_ends(
    fabrics: Sequence[NodeFabric], options: RingOptions
) -> tuple[dict[Cage, End], list[Problem]]:
    """Return the ends that the plan may use, and what is wrong with their functions."""
    found = {}
    problems: list[Problem] = []
    for rank, fabric in enumerate(fabrics):
        allowed = options.devices.get(fabric.node)
        problems += _unknown(fabric, allowed or ())
        for cage, twins in cages_of(fabric).items():
            functions = tuple(one for one in twins if _used(one, allowed))
            for one in functions:
                if not is_lost(fabric.node, one, options):
                    problems += _faults(fabric, one)
            if functions:
                found[cage] = End(rank, cage, functions)
    return found, problems + _twice(found)


def is_lost(node: str, function: Function, options: RingOptions) -> bool:
    """Whether the plan is made around this function."""
    lost = options.lost_function
    names = (function.netdev, function.rdma)
    return lost is not None and lost.node == node and lost.device in names


def _used(function: Function, allowed: tuple[str, ...] | None) -> bool:
    if allowed is None:
        return function.rdma is not None
    return function.netdev in allowed or function.rdma in allowed


def _unknown(fabric: NodeFabric, allowed: tuple[str, ...]) -> list[Problem]:
    names = ", ".join(one.label for one in fabric.ports) or "none"
    return [
        Problem(
            f"{fabric.node} {name}",
            f"no such device; RDMA devices there: {names}",
            "a device of the node",
            f"{SHOW}; then correct fabric.devices of the site",
        )
        for name in allowed
        if fabric.function(name) is None
    ]


def _faults(fabric: NodeFabric, one: Function) -> list[Problem]:
    """Return what keeps a function out of a ring; a link that is down is the cabling's."""
    found = []

    def refuse(seen: str, wanted: str, fix: str) -> None:
        found.append(Problem(f"{fabric.node} {one.label}", seen, wanted, fix))

    if not is_card(one.mac):
        seen = f"MAC {one.mac!r}" if one.mac else "no MAC"
        refuse(seen, "the address of a card", f"ip -j link show {one.netdev}")
    if one.rdma is None:
        refuse("no RDMA device", "one", "rdma -j link; modprobe mlx5_ib")
    if one.pci is None:
        refuse("not on PCI, so its cage is unknown", "a function of a NIC", SHOW)
    if one.netdev == fabric.management:
        wanted = "another device than the one that ssh comes in on"
        refuse("the management device", wanted, "log in over the management network")
    if one.tc_offload is not None and one.tc_offload.split() == ["off", "[fixed]"]:
        seen = "hw-tc-offload off [fixed]: this NIC cannot relay"
        refuse(seen, "hw-tc-offload that can be on", f"ethtool -i {one.netdev}")
    return found


def unused(fabrics: Sequence[NodeFabric], found: Mapping[Cage, End]) -> list[Problem]:
    """Warn of functions beside a used one that the site does not name."""
    used = {(end.node, one.netdev) for end in found.values() for one in end.functions}
    left = [
        f"{fabric.node} {one.netdev}"
        for fabric in fabrics
        for cage, twins in cages_of(fabric).items()
        for one in twins
        if cage in found and (fabric.node, one.netdev) not in used
    ]
    wanted = "every function of a cage: one alone is half of the cable's bandwidth"
    fix = "name all RDMA devices in fabric.devices of the site"
    return [Problem("fabric.devices", f"without {', '.join(left)}", wanted, fix)] if left else []


def _twice(found: Mapping[Cage, End]) -> list[Problem]:
    """Return the cards that two functions have."""
    owner: dict[str, str] = {}
    problems = []
    for end in found.values():
        for one in end.functions:
            name = f"{end.node} {one.netdev}"
            other = owner.setdefault(one.mac, name)
            if other != name and is_card(one.mac):
                seen = f"MAC {one.mac}, which {other} has too"
                problems.append(Problem(name, seen, "a card of its own", SHOW))
    return problems
