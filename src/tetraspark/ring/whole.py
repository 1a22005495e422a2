"""Whether a plan holds together: everything it names is in it, and every number can be."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tetraspark.ring.mac import is_card
from tetraspark.ring.member import Member
from tetraspark.ring.path import Path
from tetraspark.ring.tag import MAX_RELAYS, relays_left

if TYPE_CHECKING:
    from tetraspark.ring.plan import NodePlan, RingPlan

NODES = range(3, 9)
MTUS = range(1280, 65536)
CAP = 1 << 30


def require_whole(plan: "RingPlan") -> None:
    """Raise ValueError with the first thing that is not as any plan has it."""
    for fault in _faults(plan):
        raise ValueError(fault)


def _faults(plan: "RingPlan") -> Iterator[str]:
    """Yield faults; each check relies on those before it."""
    count = len(plan.members)
    names = [one.node for one in plan.members]
    if count not in NODES or len(set(names)) != count:
        yield f"members: {count}, wanted 3 to 8 nodes, each once"
    if [one.rank for one in plan.members] != list(range(count)):
        yield "members: not by rank"
    if [one.node for one in plan.nodes] != names:
        yield "nodes: not the members in their order"
    if plan.mtu not in MTUS:
        yield f"mtu: {plan.mtu}"
    if not (0 <= plan.caps.now <= CAP and 0 <= plan.caps.after <= CAP):
        yield f"caps: {plan.caps.now} and {plan.caps.after} bytes"
    for member in plan.members:
        yield from _member(member)
    yield from _cables(plan)
    yield from _paths(plan)
    for member, node in zip(plan.members, plan.nodes, strict=True):
        yield from _node(member, node)


def _member(member: Member) -> Iterator[str]:
    netdevs = [one.netdev for one in member.functions]
    if len(set(netdevs)) != len(netdevs):
        yield f"{member.node}: a device twice"
    for one in member.functions:
        words = (member.node, one.netdev, one.rdma, one.pci)
        if not all(word and word.isprintable() for word in words):
            yield f"{member.node}: a name that cannot be printed: {one.netdev!r}"
        if not is_card(one.mac):
            yield f"{member.node} {one.netdev}: {one.mac!r} is the address of no card"


def _cables(plan: "RingPlan") -> Iterator[str]:
    count = len(plan.members)
    numbers = [one.number for one in plan.cables]
    wanted = count if plan.shape == "ring" else count - 1
    if len(set(numbers)) != wanted or len(numbers) != wanted:
        yield f"cables: {len(numbers)}, wanted {wanted} of a {plan.shape} of {count}"
    for cable in plan.cables:
        ends = (cable.number, (cable.number + 1) % count)
        if cable.number not in range(count) or (cable.lower, cable.upper) != ends:
            yield f"cable {cable.number}: from rank {cable.lower} to {cable.upper}"
        for end in ends:
            held = {one.half for one in plan.members[end].functions if one.cable == cable.number}
            if not cable.halves or not cable.halves <= held:
                yield f"cable {cable.number}: {plan.members[end].node} has not every half of it"


def _paths(plan: "RingPlan") -> Iterator[str]:
    ranks = range(len(plan.members))
    pairs = {(one.source, one.target) for one in plan.paths}
    wanted = {(a, b) for a in ranks for b in ranks if a != b}
    if pairs != wanted:
        yield f"paths: between {len(pairs & wanted)} pairs of ranks, wanted {len(wanted)}"
    cables = {one.number: one.halves for one in plan.cables}
    for path in plan.paths:
        name = f"path from rank {path.source} to {path.target}"
        if not set(path.ranks) <= set(ranks) or len(path.relays) > MAX_RELAYS:
            yield f"{name}: over {path.ranks}"
        if len(path.cables) != len(path.relays) + 1 or path.lane < 0:
            yield f"{name}: {len(path.cables)} cables, {len(path.relays)} relays, lane {path.lane}"
        if not all(path.half in cables.get(one, ()) for one in path.cables):
            yield f"{name}: half {path.half} of cables {path.cables}"
        for rank, netdev in _devices(path):
            if netdev not in {one.netdev for one in plan.members[rank].functions}:
                yield f"{name}: {plan.members[rank].node} has no {netdev!r}"


def _devices(path: Path) -> Iterator[tuple[int, str]]:
    yield path.source, path.netdev
    for one in path.relays:
        yield from ((one.rank, one.netdev_in), (one.rank, one.netdev_out))
    yield path.target, path.target_netdev


def _node(member: Member, node: "NodePlan") -> Iterator[str]:
    known = {one.netdev for one in member.functions}
    used = [*node.clsact, *(one.redirect for one in node.rules)]
    for kind in (node.requirements, node.routes, node.neighbours, node.rules, node.markers):
        used += [one.netdev for one in kind]
    for netdev in used:
        if netdev not in known:
            yield f"{node.node}: no {netdev!r} among its functions"
    for rule in node.rules:
        name = f"{node.node}: rule of {rule.netdev}"
        if not relays_left(rule.tag) or relays_left(rule.new_tag) is None:
            yield f"{name}: tags {rule.tag:#x} and {rule.new_tag:#x}"
        if not 1 <= rule.hop <= MAX_RELAYS:
            yield f"{name}: hop {rule.hop}"
        if not all(map(is_card, (rule.source_mac, rule.destination_mac, rule.new_mac))):
            yield f"{name}: an address of no card"
    for one in node.neighbours:
        if not is_card(one.mac):
            yield f"{node.node}: neighbour {one.address}: {one.mac!r} is the address of no card"
    rdma = {one.rdma for one in member.functions}
    for marker in node.markers:
        if marker.rdma not in rdma:
            yield f"{node.node}: no {marker.rdma!r} among its functions"
        for mark in marker.marks:
            if not 1 <= mark.relays <= MAX_RELAYS:
                yield f"{node.node}: {marker.rdma} marks {mark.relays} relays"
    for need in node.requirements:
        if not (1 <= need.queues <= 64 and 1 <= need.queue_size <= 1 << 16):
            yield f"{node.node}: {need.netdev}: {need.queues} queues of {need.queue_size}"
