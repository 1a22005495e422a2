"""Four Sparks in every cabling, as a model to put faults into, and what they would print.

Nothing here was recorded on a Spark. The shapes are those of iproute2, lldpd, ethtool and sysfs.
"""

from typing import Any

from tests.fabric import printed
from tests.fabric.model import NAMES, End, Model, Port
from tetraspark.fabric.function import NodeFabric
from tetraspark.fabric.inventory import read_fabric
from tetraspark.fleet.facts import Facts


class Sparks(Model):
    """A model whose nodes can be looked at."""

    def facts(self, node: str) -> Facts:
        return printed.facts(self, node)

    def fabric(self, node: str) -> NodeFabric:
        return read_fabric(self.facts(node))


def _all_ports(cages: tuple[int, ...]) -> list[Port]:
    return [
        Port(name, cage, half, f"4c:bb:47:{index + 1:02x}:{cage:02x}:{half:02x}", up=cage in cages)
        for index, name in enumerate(NAMES)
        for cage in (0, 1)
        for half in (0, 1)
    ]


def switched() -> Sparks:
    """Cage 0 of every node on one switch, each half of it in a subnet of its own."""
    sparks = Sparks(_all_ports((0,)), [{(name, 0) for name in NAMES}], switch=True)
    for port in sparks.ports:
        if port.cage == 0:
            port.address = f"192.168.{177 + port.half}.1{port.node[-1]}/24"
    return sparks


def cabled(cables: list[tuple[End, End]]) -> Sparks:
    """The cables given, each with a /24 a half: `.10` at its first end and `.11` at the other."""
    used = {end for cable in cables for end in cable}
    sparks = Sparks(_all_ports((0, 1)), [set(cable) for cable in cables], switch=False)
    for port in sparks.ports:
        port.up = (port.node, port.cage) in used
    for number, (first, second) in enumerate(cables):
        for half in (0, 1):
            subnet = f"10.{10 + half}.{number}"
            sparks.port(*first, half).address = f"{subnet}.10/24"
            sparks.port(*second, half).address = f"{subnet}.11/24"
    return sparks


def ring() -> Sparks:
    """Cage 0 of each node to cage 1 of the next."""
    return cabled([((NAMES[i], 0), (NAMES[(i + 1) % 4], 1)) for i in range(4)])


def alternating() -> Sparks:
    """Cages of the same number joined: 0-0, 1-1, 0-0, 1-1 around the ring."""
    return cabled([((NAMES[i], i % 2), (NAMES[(i + 1) % 4], i % 2)) for i in range(4)])


def line() -> Sparks:
    """A ring without the cable from the last to the first."""
    return cabled([((NAMES[i], 0), (NAMES[i + 1], 1)) for i in range(3)])


def pair() -> Sparks:
    """Two nodes, both cables between them."""
    return cabled([((NAMES[0], cage), (NAMES[1], cage)) for cage in (0, 1)])


def relay_rule(number: int, out: str, offloaded: bool = True, packets: int = 0) -> dict[str, Any]:
    """A relay rule as `tc -j -s filter show` prints it; its first action is left out."""
    stats = {"bytes": packets * 4096, "packets": packets, "drops": 0}
    hardware = {"hw_bytes": packets * 4096, "hw_packets": packets} if offloaded else {}
    mirred = {"order": 3, "kind": "mirred", "mirred_action": "redirect", "direction": "egress"}
    state = {"in_hw": True, "in_hw_count": 1} if offloaded else {"not_in_hw": True}
    keys = {"dst_mac": "4c:bb:47:02:01:00", "src_mac": "4c:bb:47:01:00:00"}
    return {
        "protocol": "[34997]",
        "pref": number,
        "kind": "flower",
        "chain": 0,
        "options": {
            "handle": number,
            "keys": keys,
            "skip_sw": True,
            **state,
            "actions": [mirred | {"to_dev": out, "stats": stats | hardware}],
        },
    }
