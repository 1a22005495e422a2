"""The packet walk: every path arrives, and every mutation of a plan is found."""

from dataclasses import replace

import pytest

from tests.ring.mutations import MUTATIONS, Mutation
from tests.ring.sparks import sparks
from tetraspark.ring.build import ring_plan
from tetraspark.ring.load import forwarded
from tetraspark.ring.options import RingOptions
from tetraspark.ring.walk import planned_wires, walk_all

PLAN = ring_plan(sparks())


@pytest.mark.parametrize("nodes", [3, 4, 5, 6, 7, 8])
def test_every_ordered_pair_is_delivered(nodes: int) -> None:
    plan = ring_plan(sparks(nodes))
    walks = walk_all(plan)
    pairs = {(one.path.source, one.path.target) for one in walks if not one.fault}
    assert len(pairs) == nodes * (nodes - 1)
    assert all(one.fault == "" and one.hops == len(one.path.cables) for one in walks)
    assert max(one.hops for one in walks) == nodes // 2


@pytest.mark.parametrize("nodes", [3, 4, 5, 8])
def test_a_line_is_walked_end_to_end(nodes: int) -> None:
    plan = ring_plan(sparks(nodes), RingOptions(lost_cable=nodes - 1))
    walks = walk_all(plan)
    assert plan.shape == "line" and not any(one.fault for one in walks)
    ends = [one for one in walks if (one.path.source, one.path.target) == (0, nodes - 1)]
    assert [one.hops for one in ends] == [nodes - 1, nodes - 1]


def test_a_walk_says_what_happens_at_every_node() -> None:
    (walk,) = (one for one in walk_all(PLAN) if one.path.ranks == (0, 1, 2))
    assert [(one.rank, one.kind, one.netdev) for one in walk.steps] == [
        (0, "sent", "enp1s0f0np0"),
        (1, "relayed", "enp1s0f1np1"),
        (2, "delivered", "enp1s0f1np1"),
    ]
    assert walk.steps[0].detail == "tag 0x88b5 to 02:00:00:00:01:02"
    assert walk.steps[1].detail == "out of enp1s0f0np0, plain"


def test_forwarded_traffic_by_cable_and_half() -> None:
    assert forwarded(PLAN) == {
        (0, 0): 2, (0, 1): 2, (1, 0): 4, (2, 0): 2, (2, 1): 2, (3, 1): 4,
    }  # fmt: skip


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.name)
def test_a_mutation_is_found(mutation: Mutation) -> None:
    plan = mutation.change(PLAN)
    assert plan.id != PLAN.id
    faults = {one.path.ranks: one.fault for one in walk_all(plan) if one.fault}
    assert set(faults) == {(0, 1, 2)}
    assert mutation.says in faults[0, 1, 2]


def test_swapped_cables_are_found() -> None:
    wires = planned_wires(PLAN)
    for half in ("p1", "P2p1"):
        one, other = (0, f"en{half}s0f0np0"), (2, f"en{half}s0f0np0")
        far, away = wires[one], wires[other]
        wires |= {one: away, away: one, other: far, far: other}
    broken = [one for one in walk_all(PLAN, wires) if one.fault]
    assert {(one.path.source, one.path.target) for one in broken} >= {
        (0, 1),
        (1, 0),
        (2, 3),
        (0, 2),
    }


def test_a_loop_ends() -> None:
    rules = list(PLAN.nodes[1].rules)
    at = next(i for i, one in enumerate(rules) if one.netdev == "enp1s0f1np1")
    back = replace(rules[at], new_tag=0x88B5, redirect="enp1s0f1np1", new_mac="02:00:00:00:00:00")
    rules[at] = back
    origin = replace(back, netdev="enp1s0f0np0", destination_mac="02:00:00:00:00:00",
                     new_mac="02:00:00:00:01:02", redirect="enp1s0f0np0")  # fmt: skip
    nodes = list(PLAN.nodes)
    nodes[0] = replace(nodes[0], rules=(*nodes[0].rules, origin))
    nodes[1] = replace(nodes[1], rules=tuple(rules))
    broken = [one for one in walk_all(replace(PLAN, nodes=tuple(nodes))) if one.fault]
    assert ["goes in circles" in one.fault for one in broken] == [True]
