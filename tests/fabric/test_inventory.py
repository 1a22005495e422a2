"""What the parsers make of the texts of four Sparks, and of damaged ones."""

import json
import random
from dataclasses import replace
from ipaddress import IPv4Interface, ip_address

import pytest

from tests.fabric.model import NAMES
from tests.fabric.sparks import relay_rule, ring, switched
from tetraspark.collectives.gid import choose_gid
from tetraspark.fabric.function import LldpPeer, Neighbour, Pci, Route
from tetraspark.fabric.hairpin import Hairpin
from tetraspark.fabric.inventory import WANTED, read_fabric, unasked
from tetraspark.fabric.inventory_lldp import peers
from tetraspark.fabric.inventory_rdma import derived_mtu
from tetraspark.fabric.inventory_tc import rules, text_rules
from tetraspark.fabric.tc_rule import TcRule
from tetraspark.fleet.facts import Facts, Said


def test_a_spark_of_a_ring_is_read_whole() -> None:
    fabric = ring().fabric("spark2")
    assert [one.netdev for one in fabric.ports] == [
        *("enp1s0f0np0", "enP2p1s0f0np0", "enp1s0f1np1", "enP2p1s0f1np1")
    ]
    one = fabric.ports[1]
    assert (one.rdma, one.label) == ("roceP2p1s0f0", "enP2p1s0f0np0 (roceP2p1s0f0)")
    assert one.pci == Pci("0002:01:00.0", 32.0, 4, 32.0, 4)
    assert one.addresses == (IPv4Interface("10.11.1.10/24"),)
    assert (one.up, one.mtu, one.speed, one.state) == (True, 9000, 200000, "ACTIVE")
    assert (one.active_mtu, one.mtu_derived) == (4096, False)
    assert (one.physical_state, one.rate) == ("LinkUp", "200 Gb/sec (4X HDR)")
    assert (one.firmware, one.tc_offload) == ("28.45.4028", "on")
    assert choose_gid(one.gids, ip_address("10.11.1.10")).index == 3
    assert one.counters["port_xmit_data"] == one.counters["rx_icrc_encapsulated"] == 0
    assert "lifespan" not in one.counters, "the time for which they are kept is none of them"
    assert one.hairpin == Hairpin(4, 1024, "hmfs", 0) and one.hairpin.pending
    assert (fabric.host, fabric.management) == ("spark2", "enP7s7")
    assert fabric.seen == ("devlink", "lldp", "neighbours", "tc")
    assert Route("default", "enP7s7", "192.168.1.1", None, "") in fabric.routes
    assert Route("10.11.1.0/24", one.netdev, None, "10.11.1.10", "kernel") in fabric.routes
    assert Neighbour(one.netdev, "10.11.1.11", "4c:bb:47:03:01:01", "STALE") in fabric.neighbours
    far = LldpPeer(one.netdev, "spark3", "enP2p1s0f1np1", "4c:bb:47:03:01:01")
    assert far in fabric.lldp
    assert fabric.twins() == (fabric.ports[:2], fabric.ports[2:])


def test_all_that_is_read_is_asked_for() -> None:
    asked = set(WANTED.commands)
    assert asked == set(ring().facts("spark1").commands)


def test_other_names_than_a_sparks_are_asked_for_in_a_second_look() -> None:
    facts = ring().facts("spark1")
    assert unasked(facts) is None
    renamed = {path.replace("enp1s0f0np0", "rail0"): to for path, to in facts.links.items()}
    second = unasked(replace(facts, links=renamed))
    assert second is not None
    assert second.commands["offload rail0"] == ("ethtool", "-k", "rail0")
    assert set(second.commands) == {"offload rail0", "statistics rail0", "rules rail0"}


def test_L32_the_active_mtu_is_the_ports_own_or_says_that_it_is_derived() -> None:
    sparks = ring()
    sparks.port("spark1", 0).mtu = 1500
    sparks.port("spark1", 1).active_mtu = 1024
    fabric = sparks.fabric("spark1")
    one, other = fabric.function("rocep1s0f0"), fabric.function("rocep1s0f1")
    assert one is not None and (one.active_mtu, one.mtu_derived) == (1024, False)
    assert other is not None and (other.mtu, other.active_mtu) == (9000, 1024)
    sparks.devinfo.clear()
    found = [(f.active_mtu, f.mtu_derived) for f in sparks.fabric("spark1").ports]
    assert found == [(1024, True), (4096, True), (4096, True), (4096, True)]
    assert [derived_mtu(mtu) for mtu in (4192, 4191, 1500, 300)] == [4096, 2048, 1024, None]


def test_L27_a_gid_that_moved_is_found_by_its_address() -> None:
    sparks = ring()
    sparks.port("spark1", 0, 1).gid_index = 5
    indices = [
        choose_gid(one.gids, one.addresses[0].ip).index for one in sparks.fabric("spark1").ports
    ]
    assert indices == [3, 5, 3, 3]


def test_a_switch_is_a_stranger_with_a_name() -> None:
    fabric = switched().fabric("spark1")
    assert {(one.system, one.port) for one in fabric.lldp} == {("switch", "qsfp56-1-1")}
    assert [one.up for one in fabric.ports] == [True, True, False, False]


def test_the_card_of_a_chassis_is_not_taken_for_that_of_the_port() -> None:
    chassis = {"id": {"type": "mac", "value": "4c:bb:47:03:00:00"}}
    port = {"id": {"type": "ifname", "value": "enp1s0f1np1"}, "ttl": "120"}
    one = {"via": "LLDP", "chassis": {"spark3": chassis}, "port": port}
    value = {"lldp": {"interface": {"enp1s0f0np0": one}}}
    assert peers(value) == (LldpPeer("enp1s0f0np0", "spark3", "enp1s0f1np1", ""),)
    nameless = {"lldp": {"interface": [{"eth1": {"chassis": chassis, "port": port}}]}}
    assert peers(nameless) == (LldpPeer("eth1", "4c:bb:47:03:00:00", "enp1s0f1np1", ""),)


L42_TEXT = """\
filter protocol ip pref 1 flower chain 0
filter protocol ip pref 1 flower chain 0 handle 0x1
  dst_ip 10.10.3.3
  not_in_hw
        action order 1: mirred (Egress Redirect to device enp1s0f1np1) stolen
        index 1 ref 1 bind 1
        Action statistics:
        Sent 8192 bytes 2 pkt (dropped 0, overlimits 0 requeues 0)
filter protocol [34997] pref 49152 flower chain 0 handle 0xc000
  dst_mac 4c:bb:47:02:01:00
  skip_sw
  in_hw in_hw_count 1
        action order 1: mirred (Egress Redirect to device enp1s0f0np0) stolen
        Sent 40960 bytes 10 pkt (dropped 0, overlimits 0 requeues 0)
        Sent software 0 bytes 0 pkt
        Sent hardware 40960 bytes 10 pkt
"""


def test_L42_a_rule_that_is_not_in_hardware_is_not_taken_for_one_that_is() -> None:
    first, second = text_rules("enp1s0f0np0", L42_TEXT)
    assert first == TcRule(
        *("enp1s0f0np0", 1, 1, "ip", "flower", False), redirect="enp1s0f1np1", packets=2
    )
    assert second == TcRule(
        *("enp1s0f0np0", 49152, 49152, "0x88b5", "flower", True),
        skip_software=True,
        destination_mac="4c:bb:47:02:01:00",
        redirect="enp1s0f0np0",
        packets=10,
        hardware_packets=10,
        hardware_bytes=40960,
    )
    head = {"protocol": "[34997]", "pref": 49152, "kind": "flower", "chain": 0}
    told = [head, relay_rule(49152, "enp1s0f0np0", packets=10), relay_rule(49153, "x", False)]
    hardware, software = rules("enp1s0f1np1", told)
    assert (hardware.protocol, hardware.handle, hardware.offloaded) == ("0x88b5", 49152, True)
    assert (hardware.redirect, hardware.packets, hardware.hardware_packets) == (
        *("enp1s0f0np0", 10, 10),
    )
    assert software.offloaded is False and software.hardware_packets is None
    silent = relay_rule(1, "x")
    del silent["options"]["in_hw"]
    assert rules("x", [silent])[0].offloaded is None


def test_R17_a_pending_hairpin_size_is_told_from_one_in_effect() -> None:
    sparks = ring()
    for port in sparks.of("spark1"):
        port.queue_size = 8192
    sparks.port("spark1", 1).reloads = 1
    found = [one.hairpin for one in sparks.fabric("spark1").ports]
    assert [one.queue_size for one in found if one] == [8192] * 4
    assert [one.pending for one in found if one] == [True, True, False, True]
    facts = sparks.facts("spark1")
    silent = replace(facts, commands={**facts.commands, "devlink statistics": Said(1, "", "no")})
    unknown = read_fabric(silent).ports[0].hairpin
    assert unknown is not None and unknown.pending is None


def test_a_program_that_is_missing_is_unknown_and_not_empty() -> None:
    facts = ring().facts("spark1")
    fabric = read_fabric(replace(facts, commands={}))
    assert fabric.seen == () and fabric.functions == ()
    sparks = ring()
    sparks.lldp.discard("spark1")
    assert "lldp" not in sparks.fabric("spark1").seen


ODD = ("", "{", "[]", "null", "3", '"text"', '[{"ifname": 3}]', "[[[[", '{"param": [1]}', "\x00é")


def damaged(facts: Facts, random_: random.Random) -> Facts:
    """Facts with half of the commands' answers and of the files spoilt."""

    def spoil(text: str) -> str:
        kind = random_.randrange(4)
        if kind == 0:
            return random_.choice(ODD)
        cut = random_.randrange(len(text) + 1)
        return text[:cut] if kind == 1 else text if kind == 2 else text[:cut] + "x" + text[cut:]

    said = {n: replace(one, stdout=spoil(one.stdout)) for n, one in facts.commands.items()}
    return replace(facts, files={p: spoil(t) for p, t in facts.files.items()}, commands=said)


@pytest.mark.parametrize("seed", range(60))
def test_damaged_text_never_raises(seed: int) -> None:
    source = random.Random(seed)
    fabric = read_fabric(damaged(ring().facts(NAMES[seed % 4]), source))
    assert fabric.node == NAMES[seed % 4]


def scrambled(value: object, source: random.Random) -> object:
    """A JSON value of the same outline with some parts of another kind."""
    if source.random() < 0.1:
        return source.choice([None, 3, "x", [], {}, [None], {"a": 1}, True, 1e9])
    if isinstance(value, dict):
        return {key: scrambled(one, source) for key, one in value.items()}
    return [scrambled(one, source) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("seed", range(60))
def test_json_of_another_shape_never_raises(seed: int) -> None:
    source, sparks = random.Random(seed), ring()
    sparks.port("spark1", 0).rules = [relay_rule(1, "enp1s0f1np1")]
    facts = sparks.facts("spark1")
    said = {
        name: replace(one, stdout=json.dumps(scrambled(json.loads(one.stdout), source)))
        for name, one in facts.commands.items()
        if one.stdout.startswith(("[", "{"))
    }
    assert read_fabric(replace(facts, commands={**facts.commands, **said})).node == "spark1"
