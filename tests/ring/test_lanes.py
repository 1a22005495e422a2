"""The collectives' wiring of a plan."""

import pytest

from tests.ring.sparks import sparks
from tetraspark.collectives.local_lane import LocalLane, check_domains
from tetraspark.collectives.wiring import Wiring
from tetraspark.ring.build import ring_plan
from tetraspark.ring.lanes import wiring
from tetraspark.ring.options import LostFunction, RingOptions

GOLDEN = "1=0/2,2=0/3,3=1/3;0=1/3,2=0/2,3=0/3;0=1/2,1=1/3,3=0/2;0=0/2,1=1/2,2=1/3"
"""Peer=device of lane 0/device of lane 1, by rank."""


def peer_maps(made: Wiring) -> str:
    return ";".join(
        ",".join(
            f"{peer}={'/'.join(str(own) for own, _ in made.ends(rank, peer))}"
            for peer in range(made.world)
            if peer != rank
        )
        for rank in range(made.world)
    )


def test_the_order_of_devices_and_peers() -> None:
    made = wiring(ring_plan(sparks()))
    names = [one.device for one in made.devices[0]]
    assert names == ["rocep1s0f0", "rocep1s0f1", "roceP2p1s0f0", "roceP2p1s0f1"]
    assert str(made.devices[2][1]) == "rocep1s0f1@10.10.1.11"
    assert peer_maps(made) == GOLDEN


@pytest.mark.parametrize("nodes", [3, 4, 5, 6, 7, 8])
@pytest.mark.parametrize("lost", [None, 0, 1])
def test_lanes_to_one_peer_are_on_two_domains(nodes: int, lost: int | None) -> None:
    plan = ring_plan(sparks(nodes), RingOptions(lost_cable=lost))
    made = wiring(plan)
    for rank, member in enumerate(plan.members):
        found = [
            LocalLane(one.rdma, 1, None, 4096, str(one.domain))  # type: ignore[arg-type]
            for one in member.functions
        ]
        assert check_domains(member.node, found, made.used_together(rank)) == []
        assert all(len(devices) == 2 for devices in made.used_together(rank))


def test_both_ends_of_a_lane_are_on_one_path() -> None:
    plan = ring_plan(sparks())
    made = wiring(plan)
    for path in plan.paths:
        own, far = made.ends(path.source, path.target)[path.lane]
        assert str(made.devices[path.source][own].address) == str(path.address)
        assert str(made.devices[path.target][far].address) == str(path.target_address)


def test_a_lost_function_leaves_one_lane_to_the_neighbour_and_two_to_the_opposite() -> None:
    lost = RingOptions(lost_function=LostFunction("spark0", "rocep1s0f0"))
    made = wiring(ring_plan(sparks(), lost))
    lanes = {pair: len(ends) for pair, ends in made.pairs}
    assert lanes == {(0, 1): 1, (0, 2): 2, (0, 3): 2, (1, 2): 2, (1, 3): 2, (2, 3): 2}
    assert [one.device for one in made.devices[0]] == [
        "rocep1s0f1", "roceP2p1s0f0", "roceP2p1s0f1",
    ]  # fmt: skip


def test_one_half_alone_gives_opposite_nodes_one_lane() -> None:
    names = ("rocep1s0f0", "rocep1s0f1")
    plan = ring_plan(sparks(), RingOptions(devices={f"spark{rank}": names for rank in range(4)}))
    assert [one.where for one in plan.warnings] == ["fabric.devices"]
    assert {pair: len(ends) for pair, ends in wiring(plan).pairs} == dict.fromkeys(
        [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], 1
    )
