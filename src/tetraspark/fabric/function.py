"""Network functions of a node: what the kernel shows of each port of a NIC, and of the node."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Interface

from tetraspark.collectives.gid import Gid, choose_gid
from tetraspark.fabric.hairpin import Hairpin
from tetraspark.fabric.tc_rule import TcRule


@dataclass(frozen=True)
class Pci:
    """A PCI address such as 0002:01:00.1, and the speed (GT/s) and width of its link, if known.

    `max_speed` and `max_width` are what the device could do.

    On a Spark the function number tells the cage (0 is the one nearest the RJ45), and the domain
    which of the two halves of that cage.
    """

    address: str
    speed: float | None = None
    width: int | None = None
    max_speed: float | None = None
    max_width: int | None = None

    @property
    def domain(self) -> int:
        """The PCI domain: 0 or 2 on a Spark."""
        return int(self.address.split(":")[0], 16)

    @property
    def cage(self) -> int:
        """The function number."""
        return int(self.address.rsplit(".", 1)[1], 16)


@dataclass(frozen=True)
class Function:
    """One function: network device and RDMA device, addresses, and what the port says of itself.

    `mtu` is the network device's and `active_mtu` the RDMA port's, in bytes; `mtu_derived` says
    that the latter was not seen and follows from the former. `speed` in Mb/s, `rate` as sysfs
    words it. `counters` are of /sys/class/infiniband/DEV/ports/1/counters and hw_counters, by
    name, and `statistics` of `ethtool -S`. `tc_offload` is `on` or `off`, with ` [fixed]` where it
    cannot be changed. `temporary` are the addresses that will expire. What could not be seen is
    None or empty; `pci` is None for a device that is not on PCI.
    """

    netdev: str
    rdma: str | None
    pci: Pci | None
    mac: str
    addresses: tuple[IPv4Interface, ...]
    up: bool
    mtu: int
    speed: int | None
    state: str | None
    active_mtu: int | None
    gids: tuple[Gid, ...]
    counters: Mapping[str, int]
    tc_offload: str | None = None
    mtu_derived: bool = False
    carrier: bool | None = None
    physical_state: str | None = None
    rate: str | None = None
    firmware: str | None = None
    statistics: Mapping[str, int] = field(default_factory=dict)
    hairpin: Hairpin | None = None
    rules: tuple[TcRule, ...] = ()
    temporary: tuple[IPv4Interface, ...] = ()

    @property
    def label(self) -> str:
        """The network device, with the RDMA device in brackets where it has one."""
        return f"{self.netdev} ({self.rdma})" if self.rdma else self.netdev

    @property
    def gid(self) -> Gid | None:
        """The RoCE v2 entry that its first address has now, or None."""
        try:
            return choose_gid(self.gids, self.addresses[0].ip) if self.addresses else None
        except ValueError:
            return None


@dataclass(frozen=True)
class Neighbour:
    """An address that a node has seen on a device, from its neighbour table or over LLDP."""

    netdev: str
    address: str
    mac: str
    state: str


@dataclass(frozen=True)
class LldpPeer:
    """Who is at the other end of a device's cable, in its own words."""

    netdev: str
    system: str
    port: str
    mac: str


@dataclass(frozen=True)
class Route:
    """A route of the main table; `gateway` is None where the network is on the link."""

    destination: str
    netdev: str
    gateway: str | None
    source: str | None
    protocol: str


@dataclass(frozen=True)
class NodeFabric:
    """The fabric as one node shows it. `management` is the device that ssh came in on, if seen.

    `host` is the name the node gives itself, as LLDP tells it to others. `leftovers` are files of
    netplan that NetworkManager wrote, by path. `forwarding` is whether the kernel forwards IPv4.
    `seen` names what could be asked on the node: `lldp`, `neighbours`, `tc`, `devlink`. What is
    not in it is unknown there, and not absent.
    """

    node: str
    functions: tuple[Function, ...]
    neighbours: tuple[Neighbour, ...] = ()
    lldp: tuple[LldpPeer, ...] = ()
    routes: tuple[Route, ...] = ()
    management: str | None = None
    host: str = ""
    seen: tuple[str, ...] = ()
    leftovers: tuple[str, ...] = ()
    forwarding: bool | None = None

    def function(self, name: str) -> Function | None:
        """Return the function with that network or RDMA device name, or None."""
        return next((one for one in self.functions if name in (one.netdev, one.rdma)), None)

    @property
    def ports(self) -> tuple[Function, ...]:
        """The functions that can be part of the fabric.

        Those with an RDMA device; on a node without any, all but the one that ssh came in on.
        """
        with_rdma = tuple(one for one in self.functions if one.rdma is not None)
        rest = tuple(one for one in self.functions if one.netdev != self.management)
        return with_rdma or rest

    def twins(self) -> tuple[tuple[Function, ...], ...]:
        """Return the ports by cage, the functions of one cage beside each other.

        A Spark shows one cage at the same bus, device and function number in two PCI domains. A
        port that is not on PCI is a cage of its own.
        """
        cages: dict[tuple[str, int], list[Function]] = {}
        for one in self.ports:
            key = (one.pci.address.split(":", 1)[1], one.pci.cage) if one.pci else (one.netdev, 0)
            cages.setdefault(key, []).append(one)
        order = sorted(cages, key=lambda key: (key[1], key[0]))
        return tuple(
            tuple(sorted(cages[key], key=lambda one: one.pci.domain if one.pci else 0))
            for key in order
        )
