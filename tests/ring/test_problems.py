"""What refuses a plan, and what only has to be said: each with who, what and the next command."""

from collections.abc import Sequence
from dataclasses import replace
from ipaddress import IPv4Interface, IPv4Network

import pytest

from tests.ring.sparks import FRESH, TUNED, change, lldp, mac, netdev, sparks, wires
from tetraspark.errors import Problem, UsageError
from tetraspark.fabric.function import Neighbour, NodeFabric, Route
from tetraspark.fabric.hairpin import Hairpin
from tetraspark.ring.build import ring_plan
from tetraspark.ring.options import LostFunction, RingOptions
from tetraspark.ring.plan import RingPlan
from tetraspark.ring.walk import walk_all

F0 = "enp1s0f0np0"


def refused(fabrics: Sequence[NodeFabric], options: RingOptions | None = None) -> str:
    with pytest.raises(UsageError) as error:
        ring_plan(fabrics, options)
    assert all(one.fix for one in error.value.problems)
    return str(error.value)


def warned(plan: RingPlan) -> list[Problem]:
    assert all(one.fix for one in plan.warnings)
    return list(plan.warnings)


def at(fabrics: list[NodeFabric], rank: int, device: str, **values: object) -> list[NodeFabric]:
    return [change(one, device, **values) if i == rank else one for i, one in enumerate(fabrics)]


def test_a_tuned_ring_has_nothing_to_say() -> None:
    plan = ring_plan(sparks())
    assert plan.warnings == () and plan.caps.now == 262_144


def test_R03_R04_L38_same_numbered_cages_are_planned_and_told_with_the_plugs_to_move() -> None:
    plan = ring_plan(sparks(toward_next=[0, 1, 0, 1]))
    (warning,) = warned(plan)
    assert "cable 0 (spark0 port 0 to spark1 port 0)" in warning.seen
    assert "NCCL_IB_MERGE_NICS=1" in warning.wanted
    assert warning.fix.count("swap the two cables of") == 2
    assert not any(one.fault for one in walk_all(plan))


@pytest.mark.parametrize("toward_next", [[1, 1, 1, 1], [1, 0, 0, 0], [0, 1, 1, 0], [1, 0, 1, 0]])
def test_R29_a_ring_of_any_orientation_is_planned(toward_next: list[int]) -> None:
    plan = ring_plan(sparks(toward_next=toward_next))
    assert plan.shape == "ring" and not any(one.fault for one in walk_all(plan))
    assert bool(plan.warnings) == (len(set(toward_next)) > 1)


@pytest.mark.parametrize("nodes", [6, 7, 8])
def test_R27_nodes_that_are_no_neighbours_are_reached_by_relays(nodes: int) -> None:
    plan = ring_plan(sparks(nodes))
    far = [path for path in plan.paths if len(path.cables) == nodes // 2]
    assert far and all(len(path.relays) == nodes // 2 - 1 for path in far)
    assert not any(one.fault for one in walk_all(plan))


def test_R28_a_ring_of_four_is_planned() -> None:
    assert len(ring_plan(sparks(4)).paths) == 24


def test_R17_L42_a_size_that_waits_for_a_reload_does_not_count() -> None:
    pending = replace(TUNED, reloads=0)
    plan = ring_plan(at(sparks(), 1, F0, hairpin=pending))
    assert (plan.caps.now, plan.caps.after) == (81_920, 262_144)
    (warning,) = warned(plan)
    assert warning.where == f"spark1 {F0}"
    assert warning.seen == (
        "hairpin_queue_size 8192, hairpin_num_queues 4; no reload since the boot (pending)"
    )


def test_R16_R30_L42_the_cap_grows_when_the_requirements_are_in_effect() -> None:
    before = ring_plan(sparks(hairpin=FRESH))
    assert before.caps.now == 81_920 and "plan again" in before.warnings[0].fix
    after = ring_plan(sparks(hairpin=TUNED))
    assert after.caps.now == before.caps.after == 262_144
    assert before.nodes == after.nodes and before.id != after.id


@pytest.mark.parametrize(
    ("hairpin", "offload", "now"),
    [
        (None, "on", 81_920),
        (Hairpin(queues=4, queue_size=8192, reloads=None), "on", 81_920),
        (replace(TUNED, reload_failed=True), "on", 81_920),
        (TUNED, "off", 81_920),
        (TUNED, None, 81_920),
        (replace(TUNED, queues=2), "on", 81_920),
        (replace(TUNED, queue_size=512), "on", 0),
    ],
)
def test_L42_the_smallest_relay_decides(hairpin: Hairpin | None, offload: str, now: int) -> None:
    plan = ring_plan(at(sparks(), 3, "enP2p1s0f1np1", hairpin=hairpin, tc_offload=offload))
    assert plan.caps.now == now
    assert [one.where for one in warned(plan)] == ["spark3 enP2p1s0f1np1"]


def test_a_function_that_relays_nothing_does_not_lower_the_cap() -> None:
    assert ring_plan(at(sparks(), 1, "enP2p1s0f0np0", hairpin=FRESH)).caps.now == 262_144


def test_a_ring_of_three_needs_no_relay_and_no_reload() -> None:
    plan = ring_plan(sparks(3, hairpin=None))
    assert plan.caps.now == 262_144 and not plan.warnings
    assert all(not (one.rules or one.requirements or one.markers) for one in plan.nodes)


def test_an_offload_that_cannot_be_switched_on() -> None:
    text = refused(at(sparks(), 2, F0, tc_offload="off [fixed]"))
    assert "spark2 enp1s0f0np0 (rocep1s0f0): hw-tc-offload off [fixed]" in text


def test_ranks_in_another_order_than_the_cables() -> None:
    fabrics = sparks()
    text = refused([fabrics[0], fabrics[2], fabrics[1], fabrics[3]])
    assert "order [[nodes]] as spark0, spark1, spark2, spark3" in text
    for order in ([1, 2, 3, 0], [3, 2, 1, 0], [0, 3, 2, 1]):
        assert not any(one.fault for one in walk_all(ring_plan([fabrics[i] for i in order])))


def test_two_rings_of_two_are_no_ring() -> None:
    pairs = [((0, 0), (1, 1)), ((1, 0), (0, 1)), ((2, 0), (3, 1)), ((3, 0), (2, 1))]
    text = refused(sparks(cabled=pairs))
    assert "spark0 and spark1: two cables between them" in text
    assert "no cable 1 between them" in text and "no cable 3 between them" in text


def test_a_missing_cable_is_told_with_its_ends_and_the_degraded_plan() -> None:
    text = refused(sparks(cabled=wires(4, [0] * 4)[:3]))
    assert "spark3 and spark0: no cable 3 between them" in text
    assert "spark3 port 0: up, and nobody heard" in text
    assert "--lost-cable 3" in text


def test_a_link_that_is_down_at_one_half_is_its_own_finding() -> None:
    fabrics = at(sparks(), 1, "enP2p1s0f0np0", up=False)
    text = refused(fabrics)
    assert "spark1 enP2p1s0f0np0 (roceP2p1s0f0): link down on cable 1" in text
    lost = RingOptions(lost_function=LostFunction("spark1", "enP2p1s0f0np0"))
    plan = ring_plan(fabrics, lost)
    assert not any(one.fault for one in walk_all(plan))
    assert plan.cables[1].halves == {0}


def test_all_faults_are_told_at_once() -> None:
    fabrics = at(at(sparks(), 0, F0, mac=""), 2, F0, mac=mac(1, 0, 0))
    text = refused(fabrics, RingOptions(devices={"spark3": ("rocep9s0f0", "rocep1s0f0")}))
    assert "no MAC" in text and f"MAC {mac(1, 0, 0)}, which spark1 {F0} has too" in text
    assert "spark3 rocep9s0f0: no such device" in text


def test_what_the_site_names_must_be_at_both_ends() -> None:
    names = ("rocep1s0f0", "rocep1s0f1")
    text = refused(sparks(), RingOptions(devices={"spark0": names}))
    assert "no function of PCI domain 2 at spark0 port 0" in text


def test_the_management_device_is_left_alone() -> None:
    text = refused([replace(sparks()[0], management=F0), *sparks()[1:]])
    assert "spark0 enp1s0f0np0 (rocep1s0f0): the management device" in text


def test_lldp_counts_more_than_a_stale_neighbour() -> None:
    moved = sparks(toward_next=[0, 1, 0, 0])
    told = [
        replace(
            fabric,
            lldp=tuple(
                lldp(near[1], far)
                for one, two in wires(4, [0] * 4)
                for near, far in ((one, two), (two, one))
                if near[0] == rank
            ),
        )
        for rank, fabric in enumerate(moved)
    ]
    assert ring_plan(told).members == ring_plan(sparks()).members


def test_ends_that_contradict_each_other_are_told() -> None:
    fabrics = sparks()
    wrong = [Neighbour(F0, "fe80::9", mac(2, 1, 0), "REACHABLE")]
    text = refused([replace(fabrics[0], neighbours=(*wrong, *fabrics[0].neighbours)), *fabrics[1:]])
    assert "spark0 port 0: hears spark2 port 1, which hears somebody else" in text


@pytest.mark.parametrize("nodes", [2, 9])
def test_how_many_nodes_a_ring_has(nodes: int) -> None:
    assert f"{nodes}; wanted: 3 to 8 nodes" in refused(sparks(nodes))


def test_a_node_twice() -> None:
    assert "spark1 twice" in refused(sparks(names=["spark0", "spark1", "spark1", "spark3"]))


def test_networks_of_others_are_refused() -> None:
    fabrics = sparks()
    vpn = Route("10.10.0.0/16", "tun0", "10.9.0.1", None, "static")
    docker = Route("10.11.2.0/24", "docker0", None, None, "kernel")
    default = Route("default", "enP7s7", "192.168.1.1", None, "dhcp")
    fabrics[0] = replace(fabrics[0], routes=(vpn, default))
    fabrics[2] = replace(fabrics[2], routes=(docker, default))
    text = refused(fabrics)
    assert "spark0 tun0: route to 10.10.0.0/16 via 10.9.0.1, made by static" in text
    assert "spark2 docker0: route to 10.11.2.0/24" in text


def test_the_management_network_is_refused() -> None:
    bases = (IPv4Network("192.168.0.0/16"), IPv4Network("10.11.0.0/16"))
    text = refused(sparks(), RingOptions(bases=bases))
    assert "spark0 enP7s7: management address 192.168.1.11/24" in text


def test_own_addresses_and_routes_are_no_conflict_and_foreign_ones_are() -> None:
    fabrics = sparks()
    plan = ring_plan(fabrics)
    own = tuple(Route(f"{one.destination}/32", one.netdev, None, None, "116")
                for one in plan.nodes[0].routes)  # fmt: skip
    (first,) = at(fabrics, 0, F0, addresses=(IPv4Interface("10.10.0.10/24"),))[:1]
    assert ring_plan([replace(first, routes=own), *fabrics[1:]]).id == plan.id
    elsewhere = at(fabrics, 0, F0, addresses=(IPv4Interface("10.10.2.10/24"),))
    assert "spark0 enp1s0f0np0: address 10.10.2.10/24" in refused(elsewhere)
    other = ring_plan(at(fabrics, 0, F0, addresses=(IPv4Interface("172.20.0.1/24"),)))
    assert [one.seen for one in warned(other)] == ["address 172.20.0.1/24, which is not the plan's"]


@pytest.mark.parametrize(
    ("bases", "says"),
    [
        (["10.10.0.0/16"], "1 base network; wanted: 2, one for each function of a cage"),
        (["10.10.0.0/23", "10.11.0.0/16"], "10.10.0.0/23; wanted: room for 4 networks"),
        (["10.10.0.0/25", "10.11.0.0/16"], "10.10.0.0/25; wanted: room for 4 networks"),
        (["10.0.0.0/8", "10.11.0.0/16"], "networks that do not overlap"),
    ],
)
def test_bases_that_cannot_be(bases: list[str], says: str) -> None:
    assert says in refused(sparks(), RingOptions(bases=tuple(map(IPv4Network, bases))))


def test_a_benchmark_network_is_told() -> None:
    bases = (IPv4Network("198.18.0.0/20"), IPv4Network("10.11.0.0/16"))
    (warning,) = warned(ring_plan(sparks(), RingOptions(bases=bases)))
    assert "198.18.0.0/15, which local proxies answer DNS queries from" in warning.seen


def test_a_loss_that_is_none() -> None:
    assert "a cable of 0 to 3" in refused(sparks(), RingOptions(lost_cable=4))
    lost = RingOptions(lost_function=LostFunction("spark0", netdev(7, 0)))
    assert "--lost-function: spark0:en" in refused(sparks(), lost)
    with pytest.raises(ValueError, match="one loss"):
        RingOptions(lost_cable=0, lost_function=LostFunction("spark0", F0))
