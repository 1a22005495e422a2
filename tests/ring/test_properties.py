"""Any ring: every pair is delivered, nothing is there twice, and no rule takes another's frames."""

from collections import Counter
from dataclasses import replace
from ipaddress import IPv4Network

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ring.sparks import sparks
from tetraspark.fabric.function import NodeFabric
from tetraspark.ring.build import ring_plan
from tetraspark.ring.lanes import wiring
from tetraspark.ring.load import forwarded
from tetraspark.ring.options import LostFunction, RingOptions
from tetraspark.ring.plan import RingPlan
from tetraspark.ring.walk import walk_all

NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=12)


@st.composite
def rings(draw: st.DrawFn) -> tuple[list[NodeFabric], RingOptions]:
    nodes = draw(st.integers(3, 8))
    toward_next = draw(st.lists(st.integers(0, 1), min_size=nodes, max_size=nodes))
    names = draw(st.lists(NAMES, min_size=nodes, max_size=nodes, unique=True))
    thirds = draw(st.lists(st.integers(0, 30), min_size=2, max_size=2, unique=True))
    bases = tuple(IPv4Network(f"10.{draw(st.integers(0, 255))}.{8 * n}.0/21") for n in thirds)
    fabrics = sparks(nodes, toward_next, names)
    loss = draw(st.sampled_from(["none", "cable", "function"]))
    if loss == "cable":
        return fabrics, RingOptions(bases=bases, lost_cable=draw(st.integers(0, nodes - 1)))
    if loss == "function":
        node = draw(st.sampled_from(fabrics))
        device = draw(st.sampled_from(node.ports)).netdev
        return fabrics, RingOptions(bases=bases, lost_function=LostFunction(node.node, device))
    return fabrics, RingOptions(bases=bases)


@settings(max_examples=60, deadline=None)
@given(rings())
def test_every_ordered_pair_is_delivered_and_nothing_is_there_twice(
    ring: tuple[list[NodeFabric], RingOptions],
) -> None:
    fabrics, options = ring
    plan = ring_plan(fabrics, options)
    walks = walk_all(plan)
    assert [one.fault for one in walks] == [""] * len(walks)
    world = len(fabrics)
    assert len({(one.path.source, one.path.target) for one in walks}) == world * (world - 1)
    assert all(one.crossed[0] == (one.path.source, one.path.netdev) for one in walks)
    check_addresses(plan)
    check_objects(plan)
    assert wiring(plan).world == world
    assert RingPlan.parse(plan.text(), "plan") == plan
    assert ring_plan(fabrics, options).id == plan.id


def check_addresses(plan: RingPlan) -> None:
    networks = [net for cable in plan.cables for net in cable.networks if net is not None]
    assert not any(one.overlaps(other) for i, one in enumerate(networks) for other in networks[:i])
    held = Counter(one.interface.network for member in plan.members for one in member.functions)
    assert set(held) == set(networks) and set(held.values()) == {2}
    addresses = [one.address for member in plan.members for one in member.functions]
    assert len(set(addresses)) == len(addresses)


def check_objects(plan: RingPlan) -> None:
    for node in plan.nodes:
        numbers = [(one.netdev, one.preference, one.handle) for one in node.rules]
        assert len(set(numbers)) == len(numbers)
        taken = [(one.netdev, one.tag, one.source_mac, one.destination_mac) for one in node.rules]
        assert len(set(taken)) == len(taken)
        targets = [one.destination for one in node.routes]
        assert len(set(targets)) == len(targets)
        assert [(one.address, one.netdev) for one in node.neighbours] == [
            (one.destination, one.netdev) for one in node.routes
        ]


@settings(max_examples=40, deadline=None)
@given(rings(), st.data())
def test_without_any_one_rule_some_path_and_only_paths_of_that_rule_are_lost(
    ring: tuple[list[NodeFabric], RingOptions], data: st.DataObject
) -> None:
    plan = ring_plan(*ring)
    places = [(i, j) for i, node in enumerate(plan.nodes) for j in range(len(node.rules))]
    if not places:
        assert not forwarded(plan)
        return
    rank, number = data.draw(st.sampled_from(places))
    rules = plan.nodes[rank].rules
    nodes = list(plan.nodes)
    nodes[rank] = replace(nodes[rank], rules=rules[:number] + rules[number + 1 :])
    lost = [one for one in walk_all(replace(plan, nodes=tuple(nodes))) if one.fault]
    assert len(lost) == 1 and rank in lost[0].path.ranks[1:-1]
    card = plan.members[lost[0].path.source].function(lost[0].path.netdev).mac
    assert rules[number].source_mac == card
