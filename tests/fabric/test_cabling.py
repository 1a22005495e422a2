"""How a fleet is cabled: shapes, order, orientation, and the smallest re-cabling."""

import itertools
import json
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.fabric.model import NAMES
from tests.fabric.sparks import Sparks, alternating, cabled, line, pair, ring, switched
from tetraspark.doctor.check import Check
from tetraspark.fabric.cabling import Cabling
from tetraspark.fabric.cabling_checks import Topology, to_uniform
from tetraspark.fabric.cabling_moves import Pair, moves
from tetraspark.fabric.cabling_read import read_cabling
from tetraspark.fabric.cabling_wire import Cage
from tetraspark.fabric.checks import fabric_checks
from tetraspark.fabric.inventory import LEFTOVERS, read_fabric

DEVICES = ("rocep1s0f0", "roceP2p1s0f0", "rocep1s0f1", "roceP2p1s0f1")


def read(sparks: Sparks, nodes: tuple[str, ...] = NAMES, absent: str = "") -> Cabling:
    seen = {name: sparks.fabric(name) for name in nodes if name != absent}
    return read_cabling(nodes, seen)


def checks(
    sparks: Sparks, topology: Topology = "ring", nodes: tuple[str, ...] = NAMES, absent: str = ""
) -> dict[str, list[Check]]:
    fabrics = {name: sparks.fabric(name) for name in nodes if name != absent}
    found: dict[str, list[Check]] = {}
    for check in fabric_checks(nodes, fabrics, topology, dict.fromkeys(nodes, DEVICES)):
        found.setdefault(check.id, []).append(check)
    return found


def wrong(found: dict[str, list[Check]]) -> dict[str, str]:
    """The IDs that are not ok, with their verdicts."""
    return {
        name: one.verdict for name, several in found.items() for one in several
        if one.verdict != "ok"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("make", "topology", "shape", "nodes"),
    [
        (switched, "switch", "switched", NAMES),
        (ring, "ring", "ring", NAMES),
        (pair, "pair", "pair", NAMES[:2]),
    ],
)
def test_a_fleet_that_is_cabled_as_its_site_says_passes_every_check(
    make: Callable[[], Sparks], topology: Topology, shape: str, nodes: tuple[str, ...]
) -> None:
    sparks = make()
    assert read(sparks, nodes).shape == shape
    found = checks(sparks, topology, nodes)
    assert wrong(found) == {}
    assert len(found) >= 11


def test_the_order_and_orientation_of_rings() -> None:
    found = read(ring())
    assert (found.order, found.orientation, found.in_rank_order) == (NAMES, "uniform", True)
    found = read(alternating())
    assert (found.order, found.orientation, found.in_rank_order) == (NAMES, "alternating", True)
    backwards = cabled([((NAMES[i], 1), (NAMES[(i + 1) % 4], 0)) for i in range(4)])
    found = read(backwards)
    assert (found.order, found.orientation) == ((NAMES[0], *NAMES[:0:-1]), "uniform")
    assert found.in_rank_order
    assert (read(line()).shape, read(line()).order) == ("line", NAMES)
    assert read(line()).orientation is None


@pytest.mark.parametrize("order", list(itertools.permutations(NAMES[1:])))
def test_ranks_must_be_a_rotation_or_a_reflection_of_the_ring(order: tuple[str, ...]) -> None:
    nodes = (NAMES[0], *order)
    fits = order in (NAMES[1:], NAMES[:0:-1])
    check = checks(ring(), nodes=nodes)["CABLING.ORDER"][0]
    assert check.verdict == ("ok" if fits else "failed")
    if not fits:
        assert check.fix == (
            "write the [[nodes]] of the site in the order spark1, spark2, spark3, spark4"
        )


def test_a_line_lacks_one_cable() -> None:
    (check,) = checks(line())["CABLING.SHAPE"]
    assert check.verdict == "failed"
    assert check.fix == "plug a cable into spark4 port 0 and spark1 port 1"


def test_L38_ports_of_one_number_joined_name_the_sparks_whose_cables_swap() -> None:
    sparks = ring()
    sparks.swap(("spark2", 0), ("spark2", 1))
    found = read(sparks)
    assert (found.shape, found.orientation) == ("ring", "mixed")
    (check,) = checks(sparks)["CABLING.ORIENTATION"]
    assert check.verdict == "warning"
    assert "spark1 port 0 - spark2 port 0" in check.observed
    assert "swap the two cables of spark2, and with" in check.fix
    assert "NCCL_IB_MERGE_NICS=1" in check.fix
    two = to_uniform(read(alternating()))
    assert [one.first.node == one.second.node for one in two] == [True, True]


def test_two_swapped_cables_with_consistent_addresses_are_found_by_the_wire() -> None:
    sparks = ring()
    sparks.swap(("spark2", 1), ("spark4", 1))
    found = checks(sparks)
    (check,) = found["CABLING.SUBNETS"]
    assert check.verdict == "failed"
    assert "the wire joins spark1 port 0 - spark4 port 1" in check.observed
    assert "10.10.0.0/24 is on spark1 port 0 and spark2 port 1" in check.observed
    assert check.fix == (
        "swap the plugs in spark2 port 1 and spark4 port 1, "
        "or change the addresses to fit the cables"
    )
    assert found["CABLING.ENDS"][0].verdict == found["CABLING.FLAT"][0].verdict == "ok"
    (shape,) = found["CABLING.SHAPE"]
    assert shape.verdict == "failed" and shape.fix.startswith("swap the plugs in ")


def test_a_cable_between_two_ports_of_one_node() -> None:
    sparks = ring()
    sparks.swap(("spark2", 1), ("spark3", 1))
    (check,) = checks(sparks)["CABLING.SHAPE"]
    assert check.verdict == "failed" and "mixed" in check.observed
    assert "spark2 port 0 - spark2 port 1" in check.observed
    assert check.fix == "swap the plugs in spark2 port 1 and spark3 port 1"


@pytest.mark.parametrize("without", ["lldp", "neighbours"])
def test_either_kind_of_evidence_is_enough(without: str) -> None:
    sparks = ring()
    getattr(sparks, without).clear()
    assert wrong(checks(sparks)) == {}
    sparks.swap(("spark2", 1), ("spark3", 1))
    assert checks(sparks)["CABLING.SUBNETS"][0].verdict == "failed"


def test_what_only_addresses_say_is_unknown() -> None:
    sparks = ring()
    sparks.lldp.clear()
    sparks.neighbours.clear()
    found = checks(sparks)
    assert wrong(found) == {
        "CABLING.WIRE": "unknown",
        "CABLING.SHAPE": "unknown",
        "CABLING.ORDER": "unknown",
        "CABLING.ORIENTATION": "unknown",
        "CABLING.SUBNETS": "unknown",
    }
    assert "only addresses say spark1 port 0 - spark2 port 1" in found["CABLING.WIRE"][0].observed
    assert read(sparks).shape == "ring"


def test_one_node_that_shows_nothing_is_seen_by_its_neighbours() -> None:
    sparks = ring()
    sparks.lldp.discard("spark3")
    sparks.neighbours.discard("spark3")
    assert wrong(checks(sparks)) == {}


def test_a_node_that_is_down_leaves_the_ring_unknown_and_the_rest_is_checked() -> None:
    found = checks(ring(), absent="spark3")
    assert wrong(found) == {
        "CABLING.NODES": "unknown",
        "CABLING.WIRE": "unknown",
        "CABLING.SHAPE": "unknown",
        "CABLING.ORDER": "unknown",
        "CABLING.ORIENTATION": "unknown",
        "CABLING.ENDS": "unknown",
    }
    cables = {str(one) for one in read(ring(), absent="spark3").segments}
    assert cables == {"spark1 port 0 - spark2 port 1", "spark1 port 1 - spark4 port 0"}


def test_an_absent_node_with_another_name_is_not_taken_for_a_switch() -> None:
    seen = {name: ring().fabric(name) for name in NAMES if name != "spark3"}
    for name, fabric in seen.items():
        lldp = tuple(
            replace(one, system="gx10-c3.lan") if one.system == "spark3" else one
            for one in fabric.lldp
        )
        seen[name] = replace(fabric, lldp=lldp)
    cabling = read_cabling(NAMES, seen)
    assert all(one.cable for one in cabling.segments) and len(cabling.segments) == 2
    assert cabling.toward == {Cage("spark2", 0): "gx10-c3", Cage("spark4", 1): "gx10-c3"}


def test_an_entry_that_somebody_wrote_is_no_evidence() -> None:
    sparks = ring()
    sparks.lldp.clear()
    facts = sparks.facts("spark1")
    said = facts.commands["neighbours"]
    assert "STALE" in said.stdout
    sparks.neighbours = {"spark1"}
    found = {name: sparks.fabric(name) for name in NAMES}
    written = [replace(one, state="PERMANENT") for one in found["spark1"].neighbours]
    found["spark1"] = replace(found["spark1"], neighbours=tuple(written))
    cabling = read_cabling(NAMES, found)
    assert cabling.segments and not any(one.on_the_wire for one in cabling.segments)


def test_a_flat_subnet_over_four_cables_is_refused() -> None:
    sparks = ring()
    for number, port in enumerate(sparks.ports):
        port.address = f"10.0.0.{number + 1}/24"
    found = checks(sparks)
    assert found["CABLING.FLAT"][0].verdict == "failed"
    assert found["CABLING.FLAT"][0].observed == "10.0.0.0/24 is on 8 ports"
    assert {one.verdict for one in found["CABLING.TWINS"]} == {"failed"}


def test_both_functions_of_a_port_in_one_subnet_is_a_finding() -> None:
    sparks = pair()
    for cage in (0, 1):
        for half in (0, 1):
            sparks.port("spark1", cage, half).address = f"192.168.{cage}.{1 + 2 * half}/24"
            sparks.port("spark2", cage, half).address = f"192.168.{cage}.{2 + 2 * half}/24"
    found = checks(sparks, "pair", NAMES[:2])
    assert wrong(found) == {"CABLING.TWINS": "failed", "CABLING.ENDS": "failed"}
    assert found["CABLING.TWINS"][0].observed == (
        "enp1s0f0np0 and enP2p1s0f0np0 of spark1 port 0 are both in 192.168.0.0/24"
    )


def test_a_subnet_on_two_cables_and_an_address_on_two_ports() -> None:
    sparks = ring()
    for node, cage in (("spark3", 0), ("spark4", 1)):
        port = sparks.port(node, cage)
        port.address = (port.address or "").replace("10.10.2.", "10.10.0.")
    found = checks(sparks)
    assert found["CABLING.FLAT"][0].observed == "10.10.0.0/24 is on 4 ports"
    assert found["CABLING.DUPLICATE"][0].observed == (
        "10.10.0.10 is on spark1 enp1s0f0np0 and spark3 enp1s0f0np0"
    )


def test_a_subnet_inside_another_is_found() -> None:
    sparks = ring()
    for node, cage in (("spark1", 0), ("spark2", 1)):
        port = sparks.port(node, cage)
        port.address = (port.address or "").replace("/24", "/16")
    (check,) = (c for c in checks(sparks)["CABLING.DUPLICATE"] if "/16" in c.observed
                and "10.10.1.0/24" in c.observed)  # fmt: skip
    assert check.verdict == "failed"


def test_R23_an_mtu_that_fell_back_at_one_end_is_named() -> None:
    sparks = ring()
    sparks.port("spark2", 1, 1).mtu = 1500
    (check,) = checks(sparks)["CABLING.MTU"]
    assert (check.verdict, check.observed) == ("failed", "spark2 enP2p1s0f1np1 has 1500")


def test_R9_a_function_without_an_address_is_named() -> None:
    sparks = ring()
    sparks.port("spark4", 0, 1).address = None
    (check,) = checks(sparks)["CABLING.ADDRESS"]
    assert (check.node, check.verdict) == ("spark4", "failed")
    assert check.observed.startswith("enP2p1s0f0np0 (roceP2p1s0f0) is up and has no IPv4 address")


def test_R25_one_device_of_each_domain_does_not_reach_both_neighbours() -> None:
    fabrics = {name: ring().fabric(name) for name in NAMES}
    chosen = dict.fromkeys(NAMES, ("rocep1s0f0", "roceP2p1s0f1"))
    found = [c for c in fabric_checks(NAMES, fabrics, "ring", chosen) if c.verdict != "ok"]
    assert [one.id for one in found] == ["CABLING.DEVICES"] * 4
    assert found[0].observed == (
        "spark1 port 0 - spark2 port 1: "
        "spark1 has rocep1s0f0 there and spark2 has roceP2p1s0f1 there"
    )


def test_R22_addresses_that_will_expire_and_files_that_bring_them_back() -> None:
    facts = ring().facts("spark1")
    said = facts.commands["addresses"]
    cards = json.loads(said.stdout)
    card = next(one for one in cards if one["ifname"] == "enp1s0f0np0")
    card["addr_info"][0]["valid_life_time"] = 3541
    path = "/etc/netplan/90-NM-6f6b0b1e.yaml"
    commands = {**facts.commands, "addresses": replace(said, stdout=json.dumps(cards))}
    fabric = read_fabric(replace(facts, commands=commands, globs={LEFTOVERS: (path,)}))
    fabrics = {name: ring().fabric(name) for name in NAMES} | {"spark1": fabric}
    chosen = dict.fromkeys(NAMES, DEVICES)
    found = {c.id: c for c in fabric_checks(NAMES, fabrics, "ring", chosen) if c.verdict != "ok"}
    assert found["CABLING.LASTING"].observed == "enp1s0f0np0: 10.10.0.10/24 will expire"
    assert found["CABLING.NETPLAN"].observed == f"spark1 {path}"
    assert set(found) == {"CABLING.LASTING", "CABLING.NETPLAN"}


def test_a_switch_where_the_site_wants_a_ring() -> None:
    (check,) = checks(switched())["CABLING.SHAPE"]
    assert check.verdict == "failed" and "on switch" in check.observed
    assert check.fix == 'write topology = "switch", or change the cables'


def test_ends_that_deny_each_other_are_unknown() -> None:
    sparks = ring()
    sparks.lldp.clear()
    found = {name: sparks.fabric(name) for name in NAMES}
    mac = sparks.port("spark3", 0).mac
    moved = tuple(
        replace(one, mac=mac) if one.netdev.endswith("f0np0") else one
        for one in found["spark1"].neighbours
    )
    found["spark1"] = replace(found["spark1"], neighbours=moved)
    cabling = read_cabling(NAMES, found)
    assert (Cage("spark1", 0), Cage("spark3", 0)) in cabling.contradicted
    assert not cabling.complete


ENDS = [Cage(name, number) for name in NAMES for number in (0, 1)]


def matching(source: random.Random) -> list[Pair]:
    ends = source.sample(ENDS, len(ENDS))
    return list(zip(ends[::2], ends[1::2], strict=True))


def plugged(cables: list[Pair]) -> set[frozenset[Cage]]:
    return {frozenset(one) for one in cables}


def fewest_swaps(start: set[frozenset[Cage]], goal: set[frozenset[Cage]]) -> int:
    """Breadth first over all cablings, a swap of any two plugs a step."""
    front, met = {frozenset(start)}, {frozenset(start)}
    for count in itertools.count():
        if frozenset(goal) in front:
            return count
        fresh = set()
        for one in front:
            for a, b in itertools.combinations(ENDS, 2):
                turned = {a: b, b: a}
                fresh.add(frozenset(frozenset(turned.get(e, e) for e in c) for c in one))
        front = fresh - met
        met |= front
    raise AssertionError


@pytest.mark.parametrize("seed", range(25))
def test_moves_make_what_is_wanted_with_the_fewest_swaps(seed: int) -> None:
    source = random.Random(seed)
    cables, wanted = matching(source), matching(source)
    found = moves(cables, wanted)
    now = plugged(cables)
    for move in found:
        assert move.kind == "swap"
        turned = {move.first: move.second, move.second: move.first}
        now = {frozenset(turned.get(end, end) for end in one) for one in now}
    assert now == plugged(wanted)
    assert len(found) == fewest_swaps(plugged(cables), plugged(wanted))
