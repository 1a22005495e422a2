"""Verifications: commands that only read, and what they must show once a plan is in effect."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tetraspark.ring.member import Member
from tetraspark.ring.requirement import Requirement
from tetraspark.ring.route import HostRoute, PermanentNeighbour
from tetraspark.ring.rule import RelayRule


@dataclass(frozen=True)
class Verification:
    """A command and what its output must say."""

    argv: tuple[str, ...]
    wanted: str


def verifications(
    member: Member,
    mtu: int,
    requirements: Sequence[Requirement],
    routes: Sequence[HostRoute],
    neighbours: Sequence[PermanentNeighbour],
    rules: Sequence[RelayRule],
) -> tuple[Verification, ...]:
    """Return the verifications of one node, in the order in which its objects are made."""
    return (
        *_addresses(member, mtu),
        *_requirements(requirements),
        *_reach(routes, neighbours),
        *_rules(rules),
    )


def _addresses(member: Member, mtu: int) -> Iterator[Verification]:
    for one in member.functions:
        yield Verification(
            ("ip", "-j", "addr", "show", "dev", one.netdev),
            f"{one.interface} and no other IPv4 address, mtu {mtu}, operstate UP",
        )


def _requirements(requirements: Sequence[Requirement]) -> Iterator[Verification]:
    for one in requirements:
        device = f"pci/{one.pci}"
        yield Verification(
            ("devlink", "-j", "dev", "param", "show", device),
            f"hairpin_queue_size {one.queue_size}, hairpin_num_queues {one.queues}, "
            f"flow_steering_mode {one.steering}",
        )
        yield Verification(
            ("devlink", "-j", "-s", "dev", "show", device),
            "at least one driver_reinit since the boot, and no reload_failed",
        )
        yield Verification(("ethtool", "-k", one.netdev), f"hw-tc-offload: {one.tc_offload}")


def _reach(
    routes: Sequence[HostRoute], neighbours: Sequence[PermanentNeighbour]
) -> Iterator[Verification]:
    for route in routes:
        yield Verification(
            ("ip", "-j", "route", "get", str(route.destination), "from", str(route.source)),
            f"dev {route.netdev}, no gateway",
        )
    for one in neighbours:
        yield Verification(
            ("ip", "-j", "neigh", "show", str(one.address), "dev", one.netdev),
            f"lladdr {one.mac}, PERMANENT",
        )


def _rules(rules: Sequence[RelayRule]) -> Iterator[Verification]:
    for rule in rules:
        yield Verification(
            ("tc", "-j", "-s", "filter", "show", "dev", rule.netdev, "ingress"),
            f"pref {rule.preference} handle {rule.handle}: in_hw true, {rule.protocol} from "
            f"{rule.source_mac} to {rule.destination_mac}, out of {rule.redirect}",
        )
