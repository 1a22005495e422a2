"""A small model of nodes with two ports each, and of the wires between them."""

from dataclasses import dataclass, field
from typing import Any

End = tuple[str, int]
"""A node's name and a cage."""
NAMES = ("spark1", "spark2", "spark3", "spark4")


@dataclass
class Port:
    """One function of a Spark, with all that may go wrong with it."""

    node: str
    cage: int
    half: int
    mac: str
    address: str | None = None
    up: bool = True
    mtu: int = 9000
    active_mtu: int | None = None
    speed: int = 200000
    width: str = "4"
    offload: str = "on"
    queue_size: int = 1024
    reloads: int = 0
    gid_index: int = 3
    counters: dict[str, int] = field(default_factory=dict)
    statistics: dict[str, int] = field(default_factory=dict)
    rules: list[dict[str, Any]] = field(default_factory=list)

    @property
    def netdev(self) -> str:
        return f"en{('p1', 'P2p1')[self.half]}s0f{self.cage}np{self.cage}"

    @property
    def rdma(self) -> str:
        return f"roce{('p1', 'P2p1')[self.half]}s0f{self.cage}"

    @property
    def pci(self) -> str:
        return f"000{2 * self.half}:01:00.{self.cage}"

    @property
    def link_local(self) -> str:
        """The address made of the MAC (RFC 4291, appendix A)."""
        one = [int(part, 16) for part in self.mac.split(":")]
        one[0] ^= 2
        full = [*one[:3], 0xFF, 0xFE, *one[3:]]
        groups = [f"{full[i] << 8 | full[i + 1]:x}" for i in range(0, 8, 2)]
        return "fe80::" + ":".join(groups)

    @property
    def rdma_mtu(self) -> int:
        fitting = (one for one in (4096, 2048, 1024, 512, 256) if one <= self.mtu - 96)
        return self.active_mtu or next(fitting)


@dataclass
class Model:
    """Four nodes, and the segments that their cages are on: a cable has two ends, a switch more.

    `lldp`, `neighbours` and `devinfo` name the nodes where the program or the table is there;
    `forwarding` is ip_forward by node, `gateways` further routes: node, subnet, gateway, device.
    """

    ports: list[Port]
    segments: list[set[End]]
    switch: bool
    lldp: set[str] = field(default_factory=lambda: set(NAMES))
    neighbours: set[str] = field(default_factory=lambda: set(NAMES))
    devinfo: set[str] = field(default_factory=lambda: set(NAMES))
    forwarding: dict[str, str] = field(default_factory=dict)
    gateways: list[tuple[str, str, str, str]] = field(default_factory=list)

    def port(self, node: str, cage: int, half: int = 0) -> Port:
        return next(p for p in self.ports if (p.node, p.cage, p.half) == (node, cage, half))

    def of(self, node: str) -> list[Port]:
        return [port for port in self.ports if port.node == node]

    def beyond(self, port: Port) -> list[Port]:
        """The functions that a function hears: of every cage on its segment, its own as well."""
        here = (port.node, port.cage)
        ends = {end for segment in self.segments if here in segment for end in segment}
        return [
            other
            for other in self.ports
            if other is not port and (other.node, other.cage) in ends and other.up and port.up
        ]

    def swap(self, first: End, second: End) -> None:
        """Put two plugs each into the other's cage."""
        turned = {first: second, second: first}
        self.segments = [{turned.get(end, end) for end in one} for one in self.segments]
