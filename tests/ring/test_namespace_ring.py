"""The plan in a ring of namespaces: real devices, routes and neighbours; mutations are seen."""

import socket
from collections.abc import Iterable, Iterator

import pytest

from tests.ring.delivery import clear, deliver, lay_out, name, names
from tests.ring.mutations import MUTATIONS, Mutation
from tests.ring.namespace_ring import NamespaceRing, require_ring
from tests.ring.sparks import netdev, sparks, wires
from tetraspark.ring.build import ring_plan
from tetraspark.ring.options import RingOptions
from tetraspark.ring.path import Path
from tetraspark.ring.plan import RingPlan
from tetraspark.ring.walk import Place, walk_all

PLAN = ring_plan(sparks())
RELAYED = [path for path in PLAN.paths if path.relays]
FORWARD = "/proc/sys/net/ipv4/ip_forward"
FIRST = RELAYED[0]
"""0 to 2 by way of 1, over enp1s0f0np0."""


@pytest.fixture(scope="module")
def running() -> Iterator[NamespaceRing]:
    require_ring()
    made = NamespaceRing(4)
    try:
        for node in made.nodes:
            node.start_transit()
        yield made
    finally:
        made.close()


@pytest.fixture
def ring(running: NamespaceRing) -> Iterator[NamespaceRing]:
    """The nodes with the plan in effect, and kernels that forward nothing.

    A NIC takes an untagged RoCE frame for its own node's; here a kernel might pass it on.
    """
    for node in running.nodes:
        node.write(FORWARD, "0")
    lay_out(running, PLAN)
    yield running
    clear(running, PLAN)


def relayed(ring: NamespaceRing, plan: RingPlan = PLAN, lost: Iterable[Path] = ()) -> set[str]:
    """Return which relayed paths deliver; only those in `lost` should not."""
    paths = [path for path in plan.paths if path.relays]
    return deliver(ring, plan, paths, [path for path in paths if path not in lost])


def test_all_eight_paths_deliver_by_rules_alone(ring: NamespaceRing) -> None:
    for node in ring.nodes:
        node.write(FORWARD, "1")
    before = [(node.hits(), node.forwarded()) for node in ring.nodes]
    assert relayed(ring) == names(RELAYED)
    for node, planned, (hits, forwarded) in zip(ring.nodes, PLAN.nodes, before, strict=True):
        assert node.forwarded() == forwarded
        grown = {name: count - hits.get(name, 0) for name, count in node.hits().items()}
        rules = {f"{one.netdev} {one.preference} {one.handle}" for one in planned.rules}
        assert grown == dict.fromkeys(rules, 1)


def test_neighbours_deliver_on_every_cable(ring: NamespaceRing) -> None:
    direct = [path for path in PLAN.paths if not path.relays]
    assert deliver(ring, PLAN, direct, direct) == names(direct)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.name)
def test_a_mutation_loses_what_the_walk_says(ring: NamespaceRing, mutation: Mutation) -> None:
    changed = mutation.change(PLAN)
    clear(ring, PLAN)
    lay_out(ring, changed)
    walked = [one.path for one in walk_all(changed) if one.path.relays and not one.fault]
    assert relayed(ring, changed, [FIRST]) == names(walked)
    assert set(RELAYED) - set(walked) == {FIRST}


def test_L42_a_rule_that_is_not_in_hardware_relays_nothing(ring: NamespaceRing) -> None:
    ring[1].set_rules(PLAN.nodes[1].rules, in_hw=False)
    by_it = [path for path in RELAYED if path.ranks[1] == 1]
    assert relayed(ring, lost=by_it) == names(RELAYED) - names(by_it)


def test_a_foreign_route_takes_the_frames_elsewhere(ring: NamespaceRing) -> None:
    target = FIRST.target_address
    ring[0].ip(
        f"route del {target}/32 dev {FIRST.netdev}",
        f"route add {target}/32 via 10.11.0.11 dev {netdev(0, 1)}",
    )
    assert relayed(ring, lost=[FIRST]) == names(RELAYED) - {name(FIRST)}


def test_swapped_cables_lose_what_the_walk_says() -> None:
    require_ring()
    toward_next = [0, 1, 0, 0]
    ring = NamespaceRing(4, toward_next)
    try:
        for node in ring.nodes:
            node.start_transit()
        lay_out(ring, PLAN)
        walked = [one.path for one in walk_all(PLAN, cabled(toward_next)) if not one.fault]
        assert deliver(ring, PLAN, PLAN.paths, walked) == names(walked)
        assert 0 < len(walked) < len(PLAN.paths)
    finally:
        ring.close()


def cabled(toward_next: list[int]) -> dict[Place, Place]:
    found: dict[Place, Place] = {}
    for near, far in wires(4, toward_next):
        for half in (0, 1):
            one, other = (near[0], netdev(near[1], half)), (far[0], netdev(far[1], half))
            found |= {one: other, other: one}
    return found


def connects(ring: NamespaceRing, path: Path, limit: float) -> bool:
    """Whether TCP reaches a path's target from its source, by way of the kernel in between."""
    with (
        ring[path.target].open(socket.AF_INET, socket.SOCK_STREAM) as server,
        ring[path.source].open(socket.AF_INET, socket.SOCK_STREAM) as client,
    ):
        server.bind((str(path.target_address), 0))
        server.listen()
        client.bind((str(path.address), 0))
        client.settimeout(limit)
        try:
            client.connect(server.getsockname())
        except TimeoutError:
            return False
        return True


def test_R12_a_forward_policy_of_drop_stops_tcp_and_no_relayed_frame(ring: NamespaceRing) -> None:
    node = ring[1]
    node.write(FORWARD, "1")
    assert connects(ring, FIRST, 5.0)
    node.run("iptables", "-P", "FORWARD", "DROP")
    try:
        assert not connects(ring, FIRST, 0.3)
        assert relayed(ring) == names(RELAYED)
        node.run("iptables", "-P", "FORWARD", "ACCEPT")
        node.write(FORWARD, "0")
        assert not connects(ring, FIRST, 0.3)
        assert relayed(ring) == names(RELAYED)
    finally:
        node.run("iptables", "-P", "FORWARD", "ACCEPT")


def test_a_line_of_the_same_nodes_relays_twice(ring: NamespaceRing) -> None:
    line = ring_plan(sparks(), RingOptions(lost_cable=3))
    clear(ring, PLAN)
    cable = netdev(1, 0), netdev(1, 1)
    ring[0].ip(*(f"link set {one} down" for one in cable))
    lay_out(ring, line)
    try:
        assert relayed(ring, line) == names(path for path in line.paths if path.relays)
        assert max(len(path.relays) for path in line.paths) == 2
    finally:
        ring[0].ip(*(f"link set {one} up" for one in cable))
