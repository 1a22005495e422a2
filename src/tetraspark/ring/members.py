"""Members: the functions at the ends of the cables, with the addresses they are to have."""

from collections.abc import Sequence

from tetraspark.errors import Problem
from tetraspark.fabric.function import Function, NodeFabric
from tetraspark.ring.end import domain_of, is_lost
from tetraspark.ring.member import Cable, Member, RingFunction
from tetraspark.ring.networks import interface, network
from tetraspark.ring.options import RingOptions
from tetraspark.ring.order import Joint


def domains(joints: Sequence[Joint]) -> tuple[int, ...]:
    """Return the PCI domains in use; half h of a cage is the function in the h-th."""
    ends = (end for joint in joints for end in (joint.lower, joint.upper))
    found = {domain_of(one) for end in ends for one in end.functions}
    return tuple(sorted(one for one in found if one is not None))


def unusable(joints: Sequence[Joint], options: RingOptions) -> list[Problem]:
    """Return the functions that one end of a cable lacks, and those whose link is down."""
    found = []
    for joint in joints:
        for end, other in ((joint.lower, joint.upper), (joint.upper, joint.lower)):
            twins = {domain_of(one) for one in other.functions}
            for one in end.functions:
                where = f"{end.node} {one.label}"
                if _lost(joint, domain_of(one), options):
                    continue
                if domain_of(one) not in twins:
                    seen = f"no function of PCI domain {domain_of(one)} at {other}"
                    wanted = "the same functions at both ends of a cable"
                    fix = "give fabric.devices of the site both, or neither"
                    found.append(Problem(where, seen, wanted, fix))
                if not one.up:
                    seen = f"link down on cable {joint.number}, to {other}"
                    lost = f"--lost-function {end.node}:{one.netdev}"
                    fix = f"ip link set {one.netdev} up; or tetraspark ring plan {lost}"
                    found.append(Problem(where, seen, "link up", fix))
    return found


def make_cables(joints: Sequence[Joint], options: RingOptions) -> tuple[Cable, ...]:
    """Return the cables with a network for each half."""
    halves = domains(joints)
    return tuple(
        Cable(
            number=joint.number,
            lower=joint.lower.rank,
            upper=joint.upper.rank,
            lower_cage=joint.lower.cage.number,
            upper_cage=joint.upper.cage.number,
            networks=tuple(
                None if _lost(joint, domain, options) else network(base, joint.number)
                for domain, base in zip(halves, options.bases, strict=False)
            ),
        )
        for joint in joints
    )


def make_members(
    fabrics: Sequence[NodeFabric],
    joints: Sequence[Joint],
    cables: Sequence[Cable],
) -> tuple[Member, ...]:
    """Return the nodes in rank order with what they have of the ring."""
    halves = domains(joints)
    found: dict[int, list[RingFunction]] = {rank: [] for rank in range(len(fabrics))}
    for joint, cable in zip(joints, cables, strict=True):
        for end in (joint.lower, joint.upper):
            for half in sorted(cable.halves):
                one = end.of_domain(halves[half])
                assert one is not None, "both ends were checked"
                found[end.rank].append(_function(one, half, cable, end is joint.lower))
    return tuple(
        Member(rank, fabric.node, tuple(sorted(found[rank], key=lambda f: (f.domain, f.cage))))
        for rank, fabric in enumerate(fabrics)
    )


def _function(one: Function, half: int, cable: Cable, lower: bool) -> RingFunction:
    net = cable.networks[half]
    assert one.pci is not None and one.rdma is not None and net is not None
    return RingFunction(
        netdev=one.netdev,
        rdma=one.rdma,
        pci=one.pci.address,
        mac=one.mac,
        cage=one.pci.cage,
        domain=one.pci.domain,
        half=half,
        cable=cable.number,
        side="next" if lower else "previous",
        interface=interface(net, lower),
    )


def _lost(joint: Joint, domain: int | None, options: RingOptions) -> bool:
    """Whether the function in a domain is lost at either end of a cable."""
    return any(
        is_lost(end.node, one, options)
        for end in (joint.lower, joint.upper)
        for one in end.functions
        if domain_of(one) == domain
    )
