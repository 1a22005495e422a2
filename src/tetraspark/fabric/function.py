"""Network functions of a node: what the kernel shows of each port of a NIC, and of the node."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Interface

from tetraspark.collectives.gid import Gid


@dataclass(frozen=True)
class Pci:
    """A PCI address such as 0002:01:00.1, and the speed (GT/s) and width of its link, if known.

    On a Spark the function number tells the cage (0 is the one nearest the RJ45), and the domain
    which of the two halves of that cage.
    """

    address: str
    speed: float | None = None
    width: int | None = None

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

    `mtu` is the network device's and `active_mtu` the RDMA port's, in bytes; `speed` in Mb/s.
    `counters` are of /sys/class/infiniband/DEV/ports/1/counters and hw_counters, by name. What
    could not be seen is None or empty; `pci` is None for a device that is not on PCI.
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
    """The fabric as one node shows it. `management` is the device that ssh came in on, if seen."""

    node: str
    functions: tuple[Function, ...]
    neighbours: tuple[Neighbour, ...] = ()
    lldp: tuple[LldpPeer, ...] = ()
    routes: tuple[Route, ...] = ()
    management: str | None = None

    def function(self, name: str) -> Function | None:
        """Return the function with that network or RDMA device name, or None."""
        return next((one for one in self.functions if name in (one.netdev, one.rdma)), None)
