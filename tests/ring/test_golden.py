"""The eight opposite-node paths of four Sparks, device by device and address by address."""

import pytest

from tests.ring.sparks import mac, sparks
from tetraspark.ring.build import ring_plan
from tetraspark.ring.marker import Mark
from tetraspark.ring.path import Relay

PLAN = ring_plan(sparks())
F0, F1, P0, P1 = "enp1s0f0np0", "enp1s0f1np1", "enP2p1s0f0np0", "enP2p1s0f1np1"

GOLDEN: list[tuple[int | str, ...]] = [
    (0, 2, 1, 0, F0, "10.10.0.10", "10.10.0.11", "10.10.1.11", F1, F0),
    (0, 2, 3, 1, P1, "10.11.3.11", "10.11.3.10", "10.11.2.10", P0, P1),
    (1, 3, 2, 0, F0, "10.10.1.10", "10.10.1.11", "10.10.2.11", F1, F0),
    (1, 3, 0, 1, P1, "10.11.0.11", "10.11.0.10", "10.11.3.10", P0, P1),
    (2, 0, 3, 1, P0, "10.11.2.10", "10.11.2.11", "10.11.3.11", P1, P0),
    (2, 0, 1, 0, F1, "10.10.1.11", "10.10.1.10", "10.10.0.10", F0, F1),
    (3, 1, 0, 1, P0, "10.11.3.10", "10.11.3.11", "10.11.0.11", P1, P0),
    (3, 1, 2, 0, F1, "10.10.2.11", "10.10.2.10", "10.10.1.10", F0, F1),
]


@pytest.mark.parametrize("golden", GOLDEN)
def test_an_opposite_path(golden: tuple[int | str, ...]) -> None:
    (path,) = (
        one for one in PLAN.paths if (one.source, one.target, one.relays[:1]) == _start(golden)
    )
    addresses = (str(path.address), str(path.gateway), str(path.target_address))
    assert (path.half, path.netdev, *addresses) == golden[3:8]
    assert path.ranks == (golden[0], golden[2], golden[1])


def _start(golden: tuple[int | str, ...]) -> tuple[int, int, tuple[Relay, ...]]:
    relay = Relay(int(golden[2]), str(golden[8]), str(golden[9]))
    return int(golden[0]), int(golden[1]), (relay,)


def test_eight_opposite_paths_eight_routes_eight_rules_eight_markers() -> None:
    assert sum(bool(path.relays) for path in PLAN.paths) == 8
    assert len(PLAN.paths) == 24
    for kind in ("routes", "neighbours", "rules", "markers"):
        assert [len(getattr(node, kind)) for node in PLAN.nodes] == [2, 2, 2, 2], kind


def test_devices_that_mark() -> None:
    assert [[one.rdma for one in node.markers] for node in PLAN.nodes] == [
        ["rocep1s0f0", "roceP2p1s0f1"],
        ["rocep1s0f0", "roceP2p1s0f1"],
        ["rocep1s0f1", "roceP2p1s0f0"],
        ["rocep1s0f1", "roceP2p1s0f0"],
    ]
    (mark,) = PLAN.nodes[0].markers[0].marks
    assert (str(mark.destination), mark.ethertype) == ("10.10.1.11", 0x88B5)
    assert mark == Mark(mark.destination, 1)


def test_the_commands_of_the_first_path() -> None:
    assert " ".join(PLAN.nodes[0].routes[0].argv("add")) == (
        "ip route add 10.10.1.11/32 dev enp1s0f0np0 scope link src 10.10.0.10 proto 116"
    )
    assert " ".join(PLAN.nodes[0].neighbours[0].argv("replace")) == (
        f"ip neigh replace 10.10.1.11 dev enp1s0f0np0 lladdr {mac(1, 1, 0)} nud permanent "
        "protocol 116"
    )
    (rule,) = (one for one in PLAN.nodes[1].rules if one.netdev == F1)
    assert " ".join(rule.argv("add")) == (
        "tc filter add dev enp1s0f1np1 ingress protocol 0x88b5 pref 11 handle 1 flower skip_sw "
        f"src_mac {mac(0, 0, 0)} dst_mac {mac(1, 1, 0)} "
        "action pedit ex munge eth type set 0x0800 pipe "
        f"action pedit ex munge eth dst set {mac(2, 1, 0)} pipe "
        "action mirred egress redirect dev enp1s0f0np0"
    )
    assert " ".join(rule.argv("del")) == (
        "tc filter del dev enp1s0f1np1 ingress protocol 0x88b5 pref 11 handle 1 flower"
    )
    assert PLAN.nodes[1].clsact == (F0, F1)


def test_the_netplan_of_the_first_node() -> None:
    assert (
        PLAN.nodes[0].netplan
        == """\
# Addresses of the switchless ring, from a plan of `tetraspark ring plan`.
network:
  version: 2
  ethernets:
    enp1s0f0np0:
      addresses: [10.10.0.10/24]
      dhcp4: false
      dhcp6: false
      mtu: 9000
      optional: true
    enp1s0f1np1:
      addresses: [10.10.3.11/24]
      dhcp4: false
      dhcp6: false
      mtu: 9000
      optional: true
    enP2p1s0f0np0:
      addresses: [10.11.0.10/24]
      dhcp4: false
      dhcp6: false
      mtu: 9000
      optional: true
    enP2p1s0f1np1:
      addresses: [10.11.3.11/24]
      dhcp4: false
      dhcp6: false
      mtu: 9000
      optional: true
"""
    )
