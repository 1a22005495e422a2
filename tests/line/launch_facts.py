"""Nodes of a fleet as facts and fabrics, to plan a launch from."""

import json
from dataclasses import replace
from ipaddress import IPv4Interface, IPv6Address

from tetraspark.collectives.gid import Gid
from tetraspark.fabric.function import Function, NodeFabric, Pci
from tetraspark.fleet.facts import Facts, Said
from tetraspark.line.launch_image import IMAGE
from tetraspark.line.launch_interface import ADDRESSES

SITE = """\
name = "two"
kind = "fleet"
nodes = [
  { name = "spark1", host = "10.0.0.1" },
  { name = "spark2", host = "10.0.0.2" },
]
model = { path = "~/v41", served_name = "v41", canary = { prompt = "hello" } }
engine = { tp = 2, ep = 2 }
api = { port = 8888 }
image = { recipe = "release", tag = "line:one" }
weights = { mode = "local" }
fabric = { topology = "switch", devices = ["rocep1s0f0", "roceP2p1s0f0"] }
"""
V1, V2 = "IB/RoCE v1", "RoCE v2"


def links(**addresses: str) -> str:
    """Return `ip -j addr` of devices with one address each; `_down` ends the name of a dead one."""
    found = [{"ifname": "lo", "operstate": "UNKNOWN", "addr_info": [_inet("127.0.0.1/8")]}]
    for name, address in addresses.items():
        state = "DOWN" if name.endswith("_down") else "UP"
        netdev = name.removesuffix("_down")
        info = [_inet(address), {"family": "inet6", "local": "fe80::1", "prefixlen": 64}]
        found.append({"ifname": netdev, "operstate": state, "addr_info": info})
    return json.dumps(found)


def _inet(address: str) -> dict[str, object]:
    local, prefix = address.split("/")
    return {"family": "inet", "local": local, "prefixlen": int(prefix), "scope": "global"}


def facts(
    node: str, addresses: str, hosts: str = "", home: str = "/home/alice", reached: str = ""
) -> Facts:
    """Return what a probe found on a node."""
    return Facts(
        node=node,
        home=home,
        uid=1000,
        time=0.0,
        files={"/etc/hosts": hosts},
        links={},
        sizes={},
        globs={},
        space={},
        listeners={},
        commands={ADDRESSES: Said(0, addresses, ""), IMAGE: image_env("PATH=/bin")},
        ssh=reached,
    )


def image_env(*pairs: str) -> Said:
    """Return `docker image inspect` of an image with these variables."""
    return Said(0, json.dumps([{"Config": {"Env": list(pairs) or None}}]), "")


def gid(index: int, address: str, netdev: str, kind: str = V2) -> Gid:
    """Return an entry of a GID table; an IPv4 address is mapped, "" is an empty entry."""
    text = f"::ffff:{address}" if "." in address else address or "::"
    return Gid(index, IPv6Address(text), kind, netdev)


def function(rdma: str, address: str, index: int = 3, state: str = "4: ACTIVE") -> Function:
    """Return a port with its usual table: two link-local entries, then two of its address."""
    netdev = f"en{rdma.removeprefix('roce')}np{rdma[-1]}"
    own = address.split("/")[0]
    gids = [gid(0, "fe80::1", netdev, V1), gid(1, "fe80::1", netdev)]
    if address:
        gids += [gid(index - 1, own, netdev, V1), gid(index, own, netdev)]
    return Function(
        netdev=netdev,
        rdma=rdma,
        pci=Pci(f"{'0002' if 'P2p' in rdma else '0000'}:01:00.{rdma[-1]}"),
        mac="",
        addresses=(IPv4Interface(address),) if address else (),
        up=True,
        mtu=9000,
        speed=200000,
        state=state,
        active_mtu=4096,
        gids=tuple(gids),
        counters={},
    )


def fabric(node: str, *functions: Function) -> NodeFabric:
    """Return a node's fabric."""
    return NodeFabric(node, functions)


def with_gids(one: Function, *gids: Gid) -> Function:
    """Return a port with another table."""
    return replace(one, gids=gids)
