"""Devices and their ports: read from a sysfs tree, checked, refused with node and device."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.collectives.test_gid import EMPTY, LINK_LOCAL, MAPPED
from tetraspark.collectives.local_lane import (
    Choice,
    LaneRefusedError,
    LocalLane,
    Refusal,
    check_domains,
    find_lane,
)
from tetraspark.collectives.port import Port, device_names, own_fault, parse_port, read_ports

FILES = {
    "state": "4: ACTIVE\n",
    "link_layer": "Ethernet\n",
    "gids/0": LINK_LOCAL + "\n",
    "gids/1": LINK_LOCAL + "\n",
    "gids/2": MAPPED + "\n",
    "gids/3": MAPPED + "\n",
    "gids/4": EMPTY + "\n",
    "gid_attrs/types/0": "IB/RoCE v1\n",
    "gid_attrs/types/1": "RoCE v2\n",
    "gid_attrs/types/2": "IB/RoCE v1\n",
    "gid_attrs/types/3": "RoCE v2\n",
    "gid_attrs/ndevs/3": "enp1s0f0np0\n",
}


def port(**changes: str) -> Port:
    return parse_port("rocep1s0f0", 1, "0000:01:00.0", FILES | changes)


def lane(device: str, domain: str | None) -> LocalLane:
    found = find_lane("spark1", Choice("rocep1s0f0"), [port()], {1: 4096}, 4096)
    return replace(found, device=device, domain=domain)


def test_a_tree_is_read_as_it_is(tmp_path: Path) -> None:
    device = tmp_path / "pci" / "0002:01:00.1"
    device.mkdir(parents=True)
    for name, text in FILES.items():
        path = tmp_path / "class" / "roceP2p1s0f1" / "ports" / "1" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "class" / "roceP2p1s0f1" / "device").symlink_to(device)
    assert device_names(tmp_path / "class") == ["roceP2p1s0f1"]
    (read,) = read_ports("roceP2p1s0f1", tmp_path / "class")
    whole = replace(port(), device="roceP2p1s0f1", domain="0002")
    # Empty entries are left out: tables have hundreds of them.
    assert read == replace(whole, gids=whole.gids[:4])
    assert read.gids[3].netdev == "enp1s0f0np0"
    with pytest.raises(FileNotFoundError):
        read_ports("rocep1s0f0", tmp_path / "class")
    files = tmp_path / "class" / "roceP2p1s0f1" / "ports" / "1"

    def fault() -> str:
        return own_fault("roceP2p1s0f1", 1, read.gids[3], tmp_path / "class")

    assert fault() == ""
    (files / "gids" / "3").write_text(EMPTY)
    assert fault() == "its own address 10.10.0.3 is gone"
    (files / "state").write_text("1: DOWN")
    assert fault() == "its own port is DOWN"
    (files / "state").unlink()
    assert fault().startswith("its own port cannot be read: ")


def test_a_port_that_fits() -> None:
    found = find_lane("spark1", Choice.parse("rocep1s0f0@10.10.0.3"), [port()], {1: 4096}, 4096)
    assert (found.gid.index, found.mtu, found.domain) == (3, 4096, "0000")


@pytest.mark.parametrize(
    ("changes", "mtu", "choice", "seen", "wanted"),
    [
        ({"state": "1: DOWN"}, 4096, "rocep1s0f0", "port 1 is DOWN", "ACTIVE"),
        ({"link_layer": "InfiniBand"}, 4096, "rocep1s0f0", "InfiniBand", "Ethernet"),
        ({}, 1024, "rocep1s0f0", "active RDMA MTU 1024", "at least 4096"),
        ({"gids/3": EMPTY}, 4096, "rocep1s0f0", "only fe80::", "RoCE v2"),
        ({}, 4096, "rocep1s0f0@10.10.0.9", "only fe80::", "RoCE v2 GID of 10.10.0.9"),
        ({}, 4096, "rocep1s0f0:2", "ports [1]", "port 2"),
    ],
)
def test_what_does_not_fit_is_named(
    changes: dict[str, str], mtu: int, choice: str, seen: str, wanted: str
) -> None:
    with pytest.raises(LaneRefusedError) as caught:
        find_lane("spark3", Choice.parse(choice), [port(**changes)], {1: mtu}, 4096)
    (refusal,) = caught.value.refusals
    assert (refusal.node, refusal.device) == ("spark3", "rocep1s0f0")
    assert seen in refusal.seen and wanted in refusal.wanted
    assert str(caught.value).startswith("node spark3, device rocep1s0f0: ")


def test_every_fault_of_a_port_is_named_at_once() -> None:
    bad = port(state="1: DOWN", **{"gids/3": EMPTY})
    with pytest.raises(LaneRefusedError) as caught:
        find_lane("spark3", Choice("rocep1s0f0"), [bad], {1: 1024}, 4096)
    assert len(caught.value.refusals) == 3


def test_a_device_with_two_ports_needs_one_named() -> None:
    two = [port(), replace(port(), number=2)]
    with pytest.raises(LaneRefusedError, match=r"ports \[1, 2\]; wanted: the site to name one"):
        find_lane("spark1", Choice("rocep1s0f0"), two, {1: 4096, 2: 4096}, 4096)
    assert find_lane("spark1", Choice("rocep1s0f0", 2), two, {2: 4096}, 4096).port == 2


@pytest.mark.parametrize(
    "text",
    ["", ":1", "a:", "a:b", "a@", "a@10.0.0", "a:0", "a:1000", "a:²", "a/b", "..", "a b", "a" * 64],
)
def test_a_choice_that_is_none(text: str) -> None:
    with pytest.raises(ValueError):
        Choice.parse(text)


@pytest.mark.parametrize("text", ["a", "a:1", "a@10.0.0.1", "a:2@2001:db8::1"])
def test_a_choice_is_written_as_it_is_read(text: str) -> None:
    assert str(Choice.parse(text)) == text


@pytest.mark.parametrize(
    ("name", "text"), [("state", "ACTIVE"), ("gids/0", "fe80::1"), ("state", "")]
)
def test_a_file_that_is_something_else(name: str, text: str) -> None:
    with pytest.raises(ValueError):
        port(**{name: text})


def test_two_lanes_of_one_pair_in_one_domain() -> None:
    lanes = [lane("rocep1s0f0", "0000"), lane("rocep1s0f1", "0000"), lane("roceP2p1s0f0", "0002")]
    with pytest.raises(LaneRefusedError, match="node spark1, device rocep1s0f1: PCI domain 0000"):
        check_domains("spark1", lanes, [(0, 1)])
    # Two cables to two neighbours share a domain, and no pair's lanes do.
    assert check_domains("spark1", lanes, [(0, 2), (1, 2)]) == []


def test_a_device_without_pci_is_said_to_be_unchecked() -> None:
    lanes = [lane("n0r0", None), lane("n0r1", None)]
    assert check_domains("vm", lanes, [(0, 1)]) == ["n0r0", "n0r1"]


def test_refusals_are_read_as_they_are_written() -> None:
    all_of_them = [
        Refusal("spark1", "rocep1s0f0", "it is not there; there is mlx5_0", "this device"),
        Refusal("spark1", "rocep1s0f1", "only fe80::1 (RoCE v2, now at index 1)", "a GID"),
    ]
    text = f"cannot set up its end (123 bytes): {LaneRefusedError(all_of_them)}"
    assert Refusal.parse_all(text) == all_of_them
    assert Refusal.parse_all("cannot reach its peers: node b has min_mtu 1024") == []
