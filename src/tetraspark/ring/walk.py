"""Walk: follow the frames of a plan through the nodes it makes, device by device. Pure.

It reads what the nodes would be given (addresses, routes, neighbours, markers, rules) and not the
paths those were made from, so that a fault in any of them shows.
"""

from dataclasses import dataclass, replace
from typing import Literal

from tetraspark.ring.frame import Frame
from tetraspark.ring.member import Member, RingFunction
from tetraspark.ring.path import Path
from tetraspark.ring.plan import NodePlan, RingPlan
from tetraspark.ring.rule import RelayRule
from tetraspark.ring.tag import IPV4, relays_left

Place = tuple[int, str]
"""Rank and network device."""


@dataclass(frozen=True)
class Step:
    """What happened to a frame at a rank: `sent`, `relayed`, `delivered` or `lost`, and why."""

    rank: int
    kind: Literal["sent", "relayed", "delivered", "lost"]
    netdev: str
    detail: str


@dataclass(frozen=True)
class Walk:
    """Where the frames of one path go; `fault` is "" when they arrive as the path says."""

    path: Path
    steps: tuple[Step, ...]
    crossed: tuple[Place, ...]
    fault: str

    @property
    def hops(self) -> int:
        """Number of cables crossed."""
        return len(self.crossed)


class Ring:
    """A plan in effect, and cables: by default the plan's, else those given, both ways."""

    def __init__(self, plan: RingPlan, wires: dict[Place, Place] | None = None) -> None:
        self.plan = plan
        self.wires = planned_wires(plan) if wires is None else wires

    def walk(self, path: Path) -> Walk:
        """Follow a frame of a path from its source to wherever it ends."""
        steps: list[Step] = []
        crossed: list[Place] = []
        fault = self._follow(path, steps, crossed)
        return Walk(path, tuple(steps), tuple(crossed), fault)

    def _follow(self, path: Path, steps: list[Step], crossed: list[Place]) -> str:
        rank = path.source
        started = self._send(path)
        if isinstance(started, str):
            return _lose(steps, rank, path.netdev, started)
        netdev, frame = started
        steps.append(Step(rank, "sent", netdev, f"{_kind(frame)} to {frame.destination_mac}"))
        while (rank, netdev) in self.wires:
            crossed.append((rank, netdev))
            rank, came = self.wires[rank, netdev]
            if frame.plain:
                return self._receive(path, rank, came, frame, steps)
            rule = self._rule(rank, came, frame)
            if isinstance(rule, str):
                return _lose(steps, rank, came, rule)
            frame = replace(frame, ethertype=rule.new_tag, destination_mac=rule.new_mac)
            netdev = rule.redirect
            steps.append(Step(rank, "relayed", came, f"out of {netdev}, {_kind(frame)}"))
            if len(steps) > len(self.plan.members):
                return _lose(steps, rank, netdev, "goes in circles")
        return _lose(steps, rank, netdev, f"{netdev} has no cable")

    def _send(self, path: Path) -> tuple[str, Frame] | str:
        """Resolve as the kernel does, then mark as the NIC does; a text says why it cannot."""
        node, member = self.plan.nodes[path.source], self.plan.members[path.source]
        resolved = _resolve(node, member, path, self)
        if isinstance(resolved, str):
            return resolved
        out, card = resolved
        marks = [
            mark.ethertype
            for marker in node.markers
            if marker.rdma == out.rdma
            for mark in marker.marks
            if mark.destination == path.target_address
        ]
        kind = marks[0] if marks else IPV4
        return out.netdev, Frame(card, out.mac, kind, path.address, path.target_address)

    def _rule(self, rank: int, came: str, frame: Frame) -> RelayRule | str:
        """Return the one rule that takes a frame, or why none does."""
        found = [
            one
            for one in self.plan.nodes[rank].rules
            if (one.netdev, one.tag, one.source_mac, one.destination_mac)
            == (came, frame.ethertype, frame.source_mac, frame.destination_mac)
        ]
        if not found:
            return f"no rule for {_kind(frame)} from {frame.source_mac} to {frame.destination_mac}"
        return found[0] if len(found) == 1 else f"{len(found)} rules take the same frame"

    def _receive(self, path: Path, rank: int, came: str, frame: Frame, steps: list[Step]) -> str:
        """Deliver an untagged frame, if it is for this card and for an address of this device."""
        function = self.plan.members[rank].function(came)
        if frame.destination_mac != function.mac:
            return _lose(steps, rank, came, f"is for card {frame.destination_mac}")
        if frame.destination != function.address:
            return _lose(steps, rank, came, f"is for {frame.destination}, not {function.address}")
        if (rank, came) != (path.target, path.target_netdev):
            return _lose(steps, rank, came, f"was for rank {path.target} {path.target_netdev}")
        steps.append(Step(rank, "delivered", came, str(frame.destination)))
        return ""


def planned_wires(plan: RingPlan) -> dict[Place, Place]:
    """Return the far end of every device, as the plan's cables have it."""
    found: dict[Place, Place] = {}
    for cable in plan.cables:
        for half in cable.halves:
            lower = plan.members[cable.lower].at(cable.number, half).netdev
            upper = plan.members[cable.upper].at(cable.number, half).netdev
            found[cable.lower, lower] = (cable.upper, upper)
            found[cable.upper, upper] = (cable.lower, lower)
    return found


def walk_all(plan: RingPlan, wires: dict[Place, Place] | None = None) -> tuple[Walk, ...]:
    """Follow every path of a plan."""
    ring = Ring(plan, wires)
    return tuple(ring.walk(path) for path in plan.paths)


def _resolve(
    node: NodePlan, member: Member, path: Path, ring: Ring
) -> tuple[RingFunction, str] | str:
    """Return the function and the card that a node resolves a path's target address to.

    A host route comes before the network of a cable; an address on the cable is asked for there,
    and the other end answers if it has it.
    """
    target = path.target_address
    for route in node.routes:
        if route.destination == target:
            cards = [
                one.mac
                for one in node.neighbours
                if (one.address, one.netdev) == (target, route.netdev)
            ]
            if route.netdev != path.netdev:
                return f"the route to {target} leaves by {route.netdev}"
            if not cards:
                return f"nobody answers for {target} on {route.netdev}"
            return member.function(route.netdev), cards[0]
    for one in member.functions:
        if target in one.interface.network:
            rank, netdev = ring.wires.get((member.rank, one.netdev), (member.rank, one.netdev))
            other = ring.plan.members[rank].function(netdev)
            if other.address != target:
                return f"nobody answers for {target} on {one.netdev}"
            return one, other.mac
    return f"no route to {target}"


def _lose(steps: list[Step], rank: int, netdev: str, why: str) -> str:
    steps.append(Step(rank, "lost", netdev, why))
    return f"rank {rank} {netdev}: {why}"


def _kind(frame: Frame) -> str:
    left = relays_left(frame.ethertype)
    return "plain" if not left else f"tag {frame.ethertype:#06x}"
