"""Reported faults of addresses, devices and links, by number, with what must be said of each."""

import json
from pathlib import Path

import pytest

from tests.doctor.stand import Stand, site
from tetraspark.errors import UsageError


def test_L08_variables_baked_into_the_image_are_named(stand: Stand) -> None:
    stand[3].image["Config"]["Env"] += ["NCCL_SOCKET_IFNAME=enp1s0f1np1", "LD_PRELOAD=/x.so"]
    found = stand.check("IMAGE.ENVIRONMENT", "spark3")
    assert found.verdict == "warning"
    assert "NCCL_SOCKET_IFNAME=enp1s0f1np1, LD_PRELOAD=/x.so" in found.observed
    assert stand.check("IMAGE.ENVIRONMENT", "spark2").verdict == "ok"


def test_L08_interfaces_of_other_names_on_other_nodes_are_fine(stand: Stand) -> None:
    """Each node's own interface is looked up by its own address."""
    said = stand.fabric.facts("spark4").commands["addresses"].stdout
    stand[4].say("addresses", said.replace("enP7s7", "eth0"))
    for other in (1, 2, 3):
        route = [{"dst": f"192.168.1.1{other}", "dev": "eth0"}]
        stand[4].say(f"route to 192.168.1.1{other}", json.dumps(route))
    assert stand.check("ADDRESS.OWN", "spark4").observed == "192.168.1.14 on eth0"
    assert stand.check("ADDRESS.ROUTES", "spark4").verdict == "ok"


def test_L09_no_default_route_is_needed(stand: Stand) -> None:
    for machine in stand:
        machine.say("routes", "[]")
    assert not [one for one in stand.examine("ADDRESS").checks if one.verdict != "ok"]


def test_L09_an_address_that_no_interface_has_is_an_error_not_a_fallback(tmp_path: Path) -> None:
    loaded = site(tmp_path, ('"192.168.1.12"', '"10.0.22.2"'))
    found = Stand(loaded).check("ADDRESS.OWN", "spark2")
    assert found.verdict == "failed"
    assert "enP7s7 192.168.1.12" in found.observed
    assert f"{loaded.path}:5" in found.fix


def test_L09_a_peer_behind_another_interface_is_told(stand: Stand) -> None:
    stand[2].say("route to 192.168.1.13", rc=2, stderr="RTNETLINK answers: Network is unreachable")
    found = stand.check("ADDRESS.ROUTES", "spark2")
    assert found.verdict == "failed"
    assert "spark3: RTNETLINK answers: Network is unreachable" in found.observed
    assert "ip route get 192.168.1.13" in found.fix


def test_L27_an_index_that_moved_on_one_device_is_found_by_address(stand: Stand) -> None:
    stand.fabric.port("spark2", 0, 1).gid_index = 4
    gids = [one.observed for one in stand.examine("RDMA.GID").checks if one.node == "spark2"]
    assert "roceP2p1s0f0: index 4 192.168.178.12" in gids
    assert stand.check("RDMA.GID", "spark2").verdict == "ok"
    common = stand.check("RDMA.GID_COMMON", "spark2")
    assert common.verdict == "warning"
    assert common.observed == "rocep1s0f0 [3], roceP2p1s0f0 [4]"
    assert stand.check("RDMA.GID_COMMON", "spark1").observed.startswith("index [3]")


def test_L28_a_link_local_entry_is_no_gid_to_use(stand: Stand) -> None:
    stand.fabric.port("spark3", 0, 0).address = None
    found = stand.check("RDMA.GID", "spark3")
    assert found.verdict == "failed"
    assert "fe80:" in found.observed
    assert "enp1s0f0np0 has no IPv4 address" in found.observed
    assert "usable: roceP2p1s0f0 (index 3)" in found.observed


def test_L29_a_device_that_is_down_on_one_node_is_named_with_what_is_usable(stand: Stand) -> None:
    """One list of devices for all, and one node whose cable sits in the other port."""
    for half in (0, 1):
        down, up = stand.fabric.port("spark3", 0, half), stand.fabric.port("spark3", 1, half)
        down.up, up.up = False, True
        up.address, down.address, up.gid_index = down.address, None, 5
    found = stand.check("RDMA.PORT", "spark3")
    assert found.verdict == "failed"
    assert "rocep1s0f0 DOWN" in found.observed
    assert "usable on spark3: rocep1s0f1 (index 5), roceP2p1s0f1 (index 5)" in found.observed
    assert "[[nodes]] spark3" in found.fix
    assert stand.check("RDMA.PORT", "spark1").verdict == "ok"


def test_L29_devices_of_a_node_of_its_own_are_those_looked_at(tmp_path: Path) -> None:
    changed = '"192.168.1.13", devices = ["rocep1s0f1"]'
    stand = Stand(site(tmp_path, ('"192.168.1.13"', changed)))
    port = stand.fabric.port("spark3", 1, 0)
    port.up, port.address, port.gid_index = True, "192.168.179.13/24", 5
    assert stand.check("RDMA.DEVICE", "spark3").observed == "rocep1s0f1 is enp1s0f1np1"
    assert stand.check("RDMA.GID", "spark3").observed == "rocep1s0f1: index 5 192.168.179.13"


def test_L30_a_raw_list_of_devices_never_becomes_a_path(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="one plain device name an element"):
        site(tmp_path, ('["rocep1s0f0", "roceP2p1s0f0"]', '["rocep1s0f0,roceP2p1s0f0"]'))


def test_L30_the_beginning_of_a_name_is_no_device(tmp_path: Path) -> None:
    stand = Stand(site(tmp_path, ('["rocep1s0f0", "roceP2p1s0f0"]', '["roce"]')))
    found = stand.check("RDMA.DEVICE", "spark1")
    assert found.verdict == "failed"
    assert found.observed.startswith("no RDMA device roce on spark1; usable there: rocep1s0f0 (")


def test_L32_a_low_rdma_mtu_fails_with_the_netdevs(stand: Stand) -> None:
    stand.fabric.port("spark2", 0, 0).mtu = 1500
    found = stand.check("RDMA.MTU", "spark2")
    assert found.verdict == "failed"
    assert found.observed == "rocep1s0f0: 1024; netdev MTU is 1500 (enp1s0f0np0)"
    assert found.fix.startswith("set 9000 on both ends and on the switch")
    ends = stand.check("LINK.MTU")
    assert ends.verdict == "failed"
    assert "the smallest is that of spark2 enp1s0f0np0" in ends.fix


def test_L32_the_least_mtu_is_the_sites(tmp_path: Path) -> None:
    stand = Stand(site(tmp_path, ("[fabric]", "[fabric]\nmin_rdma_mtu = 1024")))
    stand.fabric.port("spark2", 0, 0).mtu = 1500
    assert stand.check("RDMA.MTU", "spark2").verdict == "ok"


def test_L38_configuration_files_of_nccl_are_shown(stand: Stand) -> None:
    stand[1].files["/etc/nccl.conf"] = "NCCL_IB_USE_INLINE=1\nNCCL_IB_PREPOST_RECEIVE_WORK=1\n"
    stand[4].files["/home/bob/.nccl.conf"] = "NCCL_DEBUG=INFO\n"
    found = stand.check("NCCL.CONF", "spark1")
    assert found.verdict == "warning"
    assert "/etc/nccl.conf: NCCL_IB_USE_INLINE=1 NCCL_IB_PREPOST_RECEIVE_WORK=1" in found.observed
    assert "/home/bob/.nccl.conf: NCCL_DEBUG=INFO" in stand.check("NCCL.CONF", "spark4").observed
    assert stand.check("NCCL.CONF", "spark2").verdict == "ok"


def test_L40_a_function_that_came_up_degraded(stand: Stand) -> None:
    stand.fabric.port("spark4", 0, 1).width = "2"
    found = stand.check("LINK.PCIE", "spark4")
    assert found.verdict == "failed"
    assert found.observed == "roceP2p1s0f0 (0002:01:00.0): 32 GT/s x2, downgraded"
    assert "unplug" in found.fix
    assert "fwupdmgr" in found.fix


def test_L41_one_half_of_a_cage_that_is_down_is_a_message_of_its_own(stand: Stand) -> None:
    stand.fabric.port("spark2", 0, 1).up = False
    found = stand.check("LINK.TWIN", "spark2")
    assert found.verdict == "failed"
    both = "enp1s0f0np0 (rocep1s0f0) up, enP2p1s0f0np0 (roceP2p1s0f0) down"
    assert found.observed == f"{both}: one cable, one half dead"


def test_L41_both_halves_down_is_no_twin_but_a_cable(stand: Stand) -> None:
    for half in (0, 1):
        stand.fabric.port("spark2", 0, half).up = False
    assert stand.check("LINK.TWIN", "spark2").verdict == "ok"
    assert stand.check("RDMA.PORT", "spark2").verdict == "failed"
