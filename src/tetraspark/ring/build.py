"""Build a ring plan from what the nodes show, in rank order. Pure: it touches no machine."""

from collections.abc import Sequence
from dataclasses import replace

from tetraspark.errors import Problem, UsageError
from tetraspark.fabric.cabling_read import read_cabling
from tetraspark.fabric.function import NodeFabric
from tetraspark.ring.end import SHOW, find_ends, is_lost, unused
from tetraspark.ring.member import Cable, Member
from tetraspark.ring.members import domains, make_cables, make_members, unusable
from tetraspark.ring.netplan import netplan
from tetraspark.ring.networks import check_bases, conflicts, doubtful
from tetraspark.ring.objects import markers, neighbours, routes, rules
from tetraspark.ring.options import LostFunction, RingOptions
from tetraspark.ring.order import Joint, find_joints
from tetraspark.ring.orientation import orientation
from tetraspark.ring.path import Path
from tetraspark.ring.paths import find_paths
from tetraspark.ring.plan import VERSION, NodePlan, RingPlan
from tetraspark.ring.queues import caps
from tetraspark.ring.requirement import Requirement
from tetraspark.ring.verification import verifications

MTU = 9000
"""Of the network devices, in bytes; an RDMA MTU of 4096 needs 4200."""


def ring_plan(fabrics: Sequence[NodeFabric], options: RingOptions | None = None) -> RingPlan:
    """Plan the ring, or the line that a lost cable leaves, of nodes given in rank order.

    Raises UsageError with every problem that can be told at once: first those of the cabling,
    then those of the addresses.
    """
    options = _by_netdev(fabrics, options or RingOptions())
    found, warnings = _joints(fabrics, options)
    cables = make_cables(found, options)
    members = make_members(fabrics, found, cables)
    paths, problems = find_paths(members, cables)
    taken, notes = _addresses(fabrics, members, cables)
    _refuse(problems + taken)
    limits, small = caps(fabrics, {one.node: rules(one.rank, paths, members) for one in members})
    return RingPlan(
        version=VERSION,
        shape="ring" if len(cables) == len(members) else "line",
        lost=options.lost,
        mtu=MTU,
        members=members,
        cables=cables,
        paths=paths,
        nodes=tuple(_node(one, paths, members) for one in members),
        caps=limits,
        warnings=(*warnings, *doubtful(options.bases), *notes, *small),
    )


def _joints(
    fabrics: Sequence[NodeFabric], options: RingOptions
) -> tuple[tuple[Joint, ...], list[Problem]]:
    """Return the cables in rank order, and warnings. Raises UsageError with all that is wrong."""
    names = [one.node for one in fabrics]
    _refuse(_twice(names))
    ends, problems = find_ends(fabrics, options)
    cabling = read_cabling(names, {one.node: one for one in fabrics})
    found, disorder = find_joints(cabling, ends, options.lost_cable)
    problems += disorder + _unknown_loss(fabrics, options) + unusable(found, options)
    if found:
        problems += check_bases(options.bases, len(domains(found)), len(fabrics))
    _refuse(problems)
    return found, [*orientation(names, found), *unused(fabrics, ends)]


def _refuse(problems: Sequence[Problem]) -> None:
    if problems:
        raise UsageError(*problems)


def _twice(names: Sequence[str]) -> list[Problem]:
    return [
        Problem("nodes of the site", f"{name} twice", "each node once", "correct [[nodes]]")
        for name in sorted({name for name in names if names.count(name) > 1})
    ]


def _by_netdev(fabrics: Sequence[NodeFabric], options: RingOptions) -> RingOptions:
    """Name a lost function by its network device: one loss is one plan, however it was typed."""
    for fabric in fabrics:
        for one in fabric.ports:
            if options.lost_function and is_lost(fabric.node, one, options):
                lost = LostFunction(fabric.node, one.netdev)
                return replace(options, lost_function=lost)
    return options


def _unknown_loss(fabrics: Sequence[NodeFabric], options: RingOptions) -> list[Problem]:
    lost = options.lost_function
    if lost is None or any(
        is_lost(fabric.node, one, options) for fabric in fabrics for one in fabric.ports
    ):
        return []
    there = [one for fabric in fabrics if fabric.node == lost.node for one in fabric.ports]
    names = ", ".join(one.label for one in there)
    wanted = (
        f"one of {lost.node}: {names}" if there else "NODE:DEVICE of an RDMA device of the ring"
    )
    return [Problem("--lost-function", str(lost), wanted, SHOW)]


def _addresses(
    fabrics: Sequence[NodeFabric], members: Sequence[Member], cables: Sequence[Cable]
) -> tuple[list[Problem], list[Problem]]:
    planned = [net for cable in cables for net in cable.networks if net is not None]
    problems: list[Problem] = []
    warnings: list[Problem] = []
    for fabric, member in zip(fabrics, members, strict=True):
        refused, told = conflicts(fabric, member, planned)
        problems += refused
        warnings += told
    return problems, warnings


def _node(member: Member, paths: Sequence[Path], members: Sequence[Member]) -> NodePlan:
    relays = rules(member.rank, paths, members)
    relaying = any(path.relays for path in paths)
    # Both cages of every half: which functions relay changes with a lost cable, and a driver
    # reload under a running line is the one thing that cannot be done then.
    wanted = tuple(Requirement(one.netdev, one.pci) for one in member.functions)
    own_routes = routes(member.rank, paths)
    own_neighbours = neighbours(member.rank, paths, members)
    requirements = wanted if relaying else ()
    return NodePlan(
        node=member.node,
        netplan=netplan(member, MTU),
        requirements=requirements,
        routes=own_routes,
        neighbours=own_neighbours,
        clsact=tuple(sorted({rule.netdev for rule in relays})),
        rules=relays,
        markers=markers(member.rank, paths, members),
        verifications=verifications(member, MTU, requirements, own_routes, own_neighbours, relays),
    )
