"""The fabric of four nodes joined by real cables: read over ssh, drawn, and re-cabled."""

import json
import os
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.fleet.nodes.fleet import Fleet
from tests.fleet.nodes.rack import wait_until
from tests.serving import COMMAND, ROOT

pytestmark = pytest.mark.fleet
NETDEVS = ("enp1s0f0np0", "enp1s0f1np1")
Plug = tuple[int, int]
"""A node's number and a cage."""
RING: list[tuple[Plug, Plug]] = [((n, 0), (n % 4 + 1, 1)) for n in range(1, 5)]
ADDRESS = {plug: f"10.10.{cable}.{10 + end}" for cable, ends in enumerate(RING)
           for end, plug in enumerate(ends)}  # fmt: skip


def cable(fleet: Fleet, ends: tuple[Plug, Plug]) -> None:
    """Lay a cable between two nodes; each end has the address of its cage, wherever it leads."""
    words = ["ip", "link", "add", "type", "veth"]
    first, second = (
        ["name", NETDEVS[cage], "netns", str(fleet[node].pid), "mtu", "9000"] for node, cage in ends
    )
    fleet.rack.net(*words[:3], *first, *words[3:], "peer", *second)
    for node, cage in ends:
        fleet[node].exec("ip", "addr", "add", f"{ADDRESS[node, cage]}/24", "dev", NETDEVS[cage])
        fleet[node].exec("ip", "link", "set", NETDEVS[cage], "up")


def link_local(fleet: Fleet, plug: Plug) -> str:
    said = fleet[plug[0]].exec("ip", "-j", "-6", "addr", "show", "dev", NETDEVS[plug[1]]).stdout
    infos = json.loads(said)[0]["addr_info"]
    return str(next(one["local"] for one in infos if one["scope"] == "link"))


RDMA = """
set -eu
port=/sys/class/infiniband/$1/ports/1
mkdir -p $port/gids $port/gid_attrs/types $port/gid_attrs/ndevs
echo "4: ACTIVE" > $port/state
printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x\\n' $(echo $3 | tr . ' ') > $port/gids/3
echo "RoCE v2" > $port/gid_attrs/types/3
echo $2 > $port/gid_attrs/ndevs/3
"""


def give_rdma(fleet: Fleet) -> None:
    """Put an RDMA device on each end of a cable, in place of the one on eth0."""
    for node in fleet.nodes:
        node.exec("mount", "-t", "tmpfs", "rdma", "/sys/class/infiniband")
    for (number, cage), address in ADDRESS.items():
        words = (f"rocep1s0f{cage}", NETDEVS[cage], address)
        fleet[number].exec("sh", "-c", RDMA, "rdma", *words)


SEND = """
import socket, sys
address = (*socket.getaddrinfo(sys.argv[1], 9, type=socket.SOCK_DGRAM)[0][4],)
socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b"hello", address)
"""


def greet(fleet: Fleet, ends: tuple[Plug, Plug]) -> None:
    """Send something over a cable by its link-local addresses, whatever its subnets are."""
    (node, cage), far = ends
    target = f"{link_local(fleet, far)}%{NETDEVS[cage]}"
    fleet[node].exec("python3", "-c", SEND, target)
    for end in ends:
        wait_until(partial(hears, fleet, end), f"a neighbour of {end}")


def hears(fleet: Fleet, plug: Plug) -> bool:
    look = ("ip", "-6", "neigh", "show", "dev", NETDEVS[plug[1]])
    return "lladdr" in fleet[plug[0]].exec(*look).stdout


@pytest.fixture
def ring(fleet: Fleet, tmp_path: Path) -> Iterator[Path]:
    """A site of the four nodes, cabled in a ring."""
    for node in fleet.nodes:
        node.exec("sh", "-c", "echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad")
    for ends in RING:
        cable(fleet, ends)
    give_rdma(fleet)
    text = (ROOT / "sites/four-sparks-ring.toml").read_text().replace('"alice"', '"root"')
    for number in range(1, 5):
        text = text.replace(f'"spark{number}"', f'"node{number}"')
        text = text.replace(f'"192.168.1.1{number}"', f'"node{number}"')
    site = tmp_path / "ring.toml"
    site.write_text(text)
    yield site
    for node in fleet.nodes:
        node.exec("umount", "/sys/class/infiniband")
        for netdev in NETDEVS:
            node.exec("ip", "link", "del", netdev, check=False)


def fabric(site: Path, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(COMMAND), "fabric", verb, "--site", str(site), *words],
        env=os.environ | {"COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_ring_is_read_recabled_and_shown_with_a_node_down(fleet: Fleet, ring: Path) -> None:
    for ends in RING:
        greet(fleet, ends)
    done = fabric(ring, "show", "--json")
    found = json.loads(done.stdout)
    assert found["cabling"]["order"] == ["node1", "node2", "node3", "node4"], done.stderr
    assert (found["cabling"]["shape"], found["cabling"]["complete"]) == ("ring", True)
    assert found["cabling"]["orientation"] == "uniform"
    one = found["fabrics"]["node2"]
    assert (one["management"], one["host"]) == ("eth0", "node2")
    assert "neighbours" in one["seen"] and "lldp" not in one["seen"]
    functions = {card["netdev"]: card for card in one["functions"]}
    assert functions["enp1s0f0np0"]["addresses"] == ["10.10.1.10/24"]
    assert (functions["enp1s0f0np0"]["mtu"], functions["enp1s0f0np0"]["up"]) == (9000, True)
    verdicts = {check["id"]: check["verdict"] for check in found["checks"]}
    assert set(verdicts.values()) == {"ok"}, found["checks"]
    assert done.returncode == 0, done.stderr

    for node, cage in ((1, 0), (3, 0)):
        fleet[node].exec("ip", "link", "del", NETDEVS[cage])
    crossed: list[tuple[Plug, Plug]] = [((1, 0), (4, 1)), ((3, 0), (2, 1))]
    for ends in crossed:
        cable(fleet, ends)
        greet(fleet, ends)
    fleet[2].sshd_stop()
    done = fabric(ring, "show")
    assert "node2  ?" in done.stdout, done.stdout + done.stderr
    assert "unknown CABLING.NODES" in done.stdout
    assert "failed CABLING.SUBNETS" in done.stdout
    assert "the wire joins node1 port 0 - node4 port 1" in done.stdout
    done = fabric(ring, "prove", "--seconds", "1")
    assert done.returncode == 1
    assert "node2" in done.stderr and "wanted: traffic in the window" in done.stderr
