"""Sparks in a ring, as their inventory would show them: every value of a node can be changed."""

from collections.abc import Sequence
from dataclasses import replace
from ipaddress import IPv4Interface
from typing import Any

from tetraspark.fabric.function import Function, LldpPeer, Neighbour, NodeFabric, Pci
from tetraspark.fabric.hairpin import Hairpin

TUNED = Hairpin(queues=4, queue_size=8192, steering="hmfs", reloads=1)
FRESH = Hairpin(queues=2, queue_size=1024, steering="dmfs", reloads=0)
DOMAINS = (0, 2)


def netdev(cage: int, half: int) -> str:
    """Return the name of a Spark's network device."""
    return f"en{('p1', 'P2p1')[half]}s0f{cage}np{cage}"


def rdma(cage: int, half: int) -> str:
    """Return the name of its RDMA device."""
    return f"roce{('p1', 'P2p1')[half]}s0f{cage}"


def mac(rank: int, cage: int, half: int) -> str:
    """Return a card's address that tells where it is."""
    return f"02:00:00:00:{rank:02x}:{cage * 2 + half:02x}"


def function(rank: int, cage: int, half: int, **more: Any) -> Function:
    """Return one function of a tuned Spark without an address."""
    values: dict[str, Any] = {
        "netdev": netdev(cage, half),
        "rdma": rdma(cage, half),
        "pci": Pci(f"{DOMAINS[half]:04x}:01:00.{cage}", 32.0, 4),
        "mac": mac(rank, cage, half),
        "addresses": (),
        "up": True,
        "mtu": 9000,
        "speed": 200000,
        "state": "4: ACTIVE",
        "active_mtu": 4096,
        "gids": (),
        "counters": {"port_xmit_data": rank},
        "tc_offload": "on",
        "hairpin": TUNED,
    }
    return Function(**(values | more))


def management(rank: int) -> Function:
    """Return the device that ssh comes in on."""
    return Function(
        netdev="enP7s7",
        rdma=None,
        pci=Pci("0007:01:00.0"),
        mac=f"02:00:00:07:{rank:02x}:00",
        addresses=(IPv4Interface(f"192.168.1.{11 + rank}/24"),),
        up=True,
        mtu=1500,
        speed=10000,
        state=None,
        active_mtu=None,
        gids=(),
        counters={},
    )


Plug = tuple[int, int]
"""One end of a cable: rank and cage."""


def wires(nodes: int, toward_next: Sequence[int]) -> list[tuple[Plug, Plug]]:
    """Return the cables of a ring; `toward_next` is the cage each node uses for the next one."""
    return [
        ((rank, toward_next[rank]), (after, 1 - toward_next[after]))
        for rank in range(nodes)
        for after in [(rank + 1) % nodes]
    ]


def sparks(
    nodes: int = 4,
    toward_next: Sequence[int] | None = None,
    names: Sequence[str] = (),
    cabled: Sequence[tuple[Plug, Plug]] | None = None,
    **more: Any,
) -> list[NodeFabric]:
    """Return Sparks of which each function has heard the two at the other end of its cable.

    And its own twin, as both hear what comes over the one cable. `more` are values of functions.
    """
    plugs = wires(nodes, toward_next or [0] * nodes) if cabled is None else cabled
    far = {near: other for one, two in plugs for near, other in ((one, two), (two, one))}
    return [
        NodeFabric(
            node=names[rank] if names else f"spark{rank}",
            functions=(
                *(function(rank, cage, half, **more) for cage in (0, 1) for half in (0, 1)),
                management(rank),
            ),
            neighbours=tuple(
                Neighbour(netdev(cage, half), f"fe80::{twin}", mac(*there, twin), "STALE")
                for cage in (0, 1)
                for half in (0, 1)
                for there in [far.get((rank, cage), (rank, cage))]
                for twin in (0, 1)
            ),
            management="enP7s7",
            host=f"host{rank}",
            seen=("devlink", "neighbours"),
        )
        for rank in range(nodes)
    ]


def change(fabric: NodeFabric, device: str, **values: Any) -> NodeFabric:
    """Return a node with other values of one function."""
    functions = tuple(
        replace(one, **values) if device in (one.netdev, one.rdma) else one
        for one in fabric.functions
    )
    return replace(fabric, functions=functions)


def lldp(cage: int, there: Plug, half: int = 0) -> LldpPeer:
    """Return what LLDP tells a node of who is at the other end."""
    card = mac(*there, half)
    return LldpPeer(netdev(cage, half), f"host{there[0]}", netdev(there[1], half), card)
