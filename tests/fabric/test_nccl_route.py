"""The model of NCCL's choice of devices: its truth table, and the field reports it explains."""

import itertools
from errno import ENODATA, ETIMEDOUT
from ipaddress import IPv4Network

import pytest

from tetraspark.fabric.nccl_port import Port, RankPorts
from tetraspark.fabric.nccl_route import Patch, Routes, Selection, routes

TURNS = {
    # which cage goes to the next rank, which to the one before
    "uniform": [(0, 1)] * 4,
    "reversed": [(1, 0)] * 4,
    "alternating": [(1, 0), (0, 1)] * 2,
}
CABLINGS = tuple(TURNS)
PATCHES: tuple[Patch, ...] = ("stock", "advertise-2", "dual-pci")
FIRST = {"rocep1s0f0", "rocep1s0f1"}
SECOND = {"roceP2p1s0f0", "roceP2p1s0f1"}


def subnet(cable: int, half: int) -> IPv4Network:
    return IPv4Network(f"10.{10 + half}.{cable}.0/24")


def ranks(cabling: str, devices: int, size: int = 4) -> tuple[RankPorts, ...]:
    found = []
    for rank in range(size):
        cable = {TURNS[cabling][rank][0]: rank, TURNS[cabling][rank][1]: (rank - 1) % size}
        ports = [
            Port(f"roce{('p1', 'P2p1')[half]}s0f{cage}", f"000{2 * half}:01:00",
                 subnet(cable[cage], half), f"cable {cable[cage]}")
            for half in range(devices // 2)
            for cage in (0, 1)
        ]  # fmt: skip
        found.append(RankPorts(f"spark{rank + 1}", tuple(ports)))
    return tuple(found)


def carrying(found: Routes) -> set[str]:
    return {name for rank in range(1, 5) for name in found.carrying(f"spark{rank}")}


def expected(
    cabling: str, devices: int, merge: bool, aware: bool, patch: Patch, cross: bool
) -> tuple[bool, set[str] | None]:
    """The truth table: whether all links come up, and over which devices."""
    both = FIRST | SECOND if devices == 4 else FIRST
    if not aware:
        return False, None
    if patch == "advertise-2":
        return True, FIRST
    if patch == "dual-pci":
        return True, FIRST if merge else both
    if merge:
        return True, both
    fits = cross if cabling == "alternating" else not cross
    return fits, both if fits else None


@pytest.mark.parametrize("cabling", CABLINGS)
@pytest.mark.parametrize("devices", [2, 4])
@pytest.mark.parametrize(
    ("merge", "aware", "patch", "cross"),
    list(itertools.product((False, True), (False, True), PATCHES, (False, True))),
)
def test_the_truth_table(
    cabling: str, devices: int, merge: bool, aware: bool, patch: Patch, cross: bool
) -> None:
    found = routes(ranks(cabling, devices), Selection(merge, aware, patch, cross))
    ok, used = expected(cabling, devices, merge, aware, patch, cross)
    assert len(found.links) == 16
    assert found.ok is ok
    if used is not None:
        assert carrying(found) == used
    else:
        assert len(found.failed) == 8 or (not aware and len(found.failed) == 16)
        assert {link.errno for link in found.failed} == {ETIMEDOUT}


def test_both_ends_of_every_link_are_on_one_cable() -> None:
    found = routes(ranks("alternating", 4), Selection(merge=True, aware=True))
    for link in found.links:
        ((out,), (into,)) = (link.out, link.into)
        assert out.wire == into.wire and out.subnet == into.subnet
    assert str(found.links[0]) == "spark1 rocep1s0f1 -> spark2 rocep1s0f1"


def test_field_3_like_ports_joined_without_fusion_fail_on_half_of_the_links() -> None:
    found = routes(ranks("alternating", 2), Selection(merge=False, aware=True))
    assert len(found.failed) == 8
    assert {link.errno for link in found.failed} == {ETIMEDOUT}


def test_field_4_an_alternating_ring_of_four_works_with_fusion_only() -> None:
    ring = ranks("alternating", 4)
    assert not routes(ring, Selection(merge=False, aware=True)).ok
    assert routes(ring, Selection(merge=True, aware=True)).ok


def test_field_9_the_third_and_fourth_device_carry_nothing_behind_two_gids() -> None:
    ring = ranks("uniform", 4)
    two = routes(ring, Selection(merge=False, aware=True, patch="advertise-2"))
    assert two.ok and carrying(two) == FIRST
    # more channels do not help
    eight = Selection(merge=False, aware=True, patch="advertise-2", channels=8)
    assert carrying(routes(ring, eight)) == FIRST
    four = routes(ring, Selection(merge=False, aware=True, patch="dual-pci"))
    assert carrying(four) == FIRST | SECOND


def test_field_9_a_second_plane_without_addresses_cannot_carry() -> None:
    bare = tuple(
        RankPorts(one.node, tuple(_without(p) if "P2" in p.device else p for p in one.ports))
        for one in ranks("uniform", 4)
    )
    found = routes(bare, Selection(merge=False, aware=True))
    assert {link.errno for link in found.failed} == {ENODATA}
    # The patched library falls back to two GIDs when one of four is empty.
    patched = routes(bare, Selection(merge=False, aware=True, patch="dual-pci"))
    assert patched.ok and carrying(patched) == FIRST


def _without(port: Port) -> Port:
    return Port(port.device, port.card, None, port.wire)


def test_field_25_one_nic_of_each_domain_cannot_reach_both_neighbours() -> None:
    pair = tuple(
        RankPorts(
            one.node, tuple(p for p in one.ports if p.device in ("rocep1s0f0", "roceP2p1s0f1"))
        )
        for one in ranks("uniform", 4)
    )
    for merge, cross in itertools.product((False, True), (False, True)):
        assert not routes(pair, Selection(merge, aware=True, cross=cross)).ok
    whole = routes(ranks("uniform", 4), Selection(merge=True, aware=True))
    assert whole.ok


def test_one_channel_uses_one_domain() -> None:
    found = routes(ranks("uniform", 4), Selection(merge=True, aware=True, channels=1))
    assert carrying(found) == FIRST


def test_a_wire_that_joins_other_ports_than_the_addresses_say_fails() -> None:
    ring = list(ranks("uniform", 2))
    first = ring[0].ports[0]
    moved = Port(first.device, first.card, first.subnet, "cable 9")
    ring[0] = RankPorts("spark1", (moved, ring[0].ports[1]))
    found = routes(ring, Selection(merge=True, aware=True))
    assert {(link.sender, link.receiver, link.errno) for link in found.failed} == {
        ("spark1", "spark2", ETIMEDOUT)
    }


def test_a_switch_joins_equal_devices_without_subnets_compared() -> None:
    network = [IPv4Network("192.168.177.0/24"), IPv4Network("192.168.178.0/24")]
    nodes = [
        RankPorts(
            f"spark{rank}",
            (
                Port("rocep1s0f0", "0000:01:00", network[0], "switch"),
                Port("roceP2p1s0f0", "0002:01:00", network[1], "switch"),
            ),
        )
        for rank in range(1, 5)
    ]
    found = routes(nodes, Selection(merge=True, aware=False))
    assert found.ok and carrying(found) == {"rocep1s0f0", "roceP2p1s0f0"}


def test_the_dual_pci_patch_keeps_a_channel_in_its_domain() -> None:
    found = routes(ranks("alternating", 4), Selection(merge=False, aware=True, patch="dual-pci"))
    for link in found.links:
        domain = FIRST if link.channel < 2 else SECOND
        assert {port.device for port in (*link.out, *link.into)} <= domain


def test_one_empty_gid_takes_the_patched_listener_back_to_two() -> None:
    ring = list(ranks("uniform", 4))
    ports = tuple(_without(p) if p.device == "roceP2p1s0f0" else p for p in ring[0].ports)
    ring[0] = RankPorts("spark1", ports)
    found = routes(ring, Selection(merge=False, aware=True, patch="dual-pci"))
    to_first = {port.device for link in found.links if link.receiver == "spark1"
                for port in link.out}  # fmt: skip
    # Its other function of that domain has an address, and is not offered any more.
    assert to_first == {"rocep1s0f0"}
    assert "roceP2p1s0f0" in found.carrying("spark3")
