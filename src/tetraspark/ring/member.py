"""Members of a ring and the cables between them."""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import Literal

Side = Literal["next", "previous"]


@dataclass(frozen=True)
class RingFunction:
    """A function of a member as the plan uses it, with the address it is to have.

    `cage` and `domain` are those of its PCI address; `half` numbers the two functions of a cage
    from 0 in order of their domains. `side` is the rank its cable leads to: the next one or the
    previous one.
    """

    netdev: str
    rdma: str
    pci: str
    mac: str
    cage: int
    domain: int
    half: int
    cable: int
    side: Side
    interface: IPv4Interface

    @property
    def address(self) -> IPv4Address:
        """Its address without the prefix."""
        return self.interface.ip


@dataclass(frozen=True)
class Member:
    """A node of the ring; its functions are ordered by domain and cage, as RDMA devices sort."""

    rank: int
    node: str
    functions: tuple[RingFunction, ...]

    def at(self, cable: int, half: int) -> RingFunction:
        """Return the function at the end of a cable. Raises LookupError."""
        for one in self.functions:
            if (one.cable, one.half) == (cable, half):
                return one
        raise LookupError(f"{self.node} has no function {half} on cable {cable}")

    def function(self, netdev: str) -> RingFunction:
        """Return the function with that network device. Raises LookupError."""
        for one in self.functions:
            if one.netdev == netdev:
                return one
        raise LookupError(f"{self.node} has no {netdev} in the plan")


@dataclass(frozen=True)
class Cable:
    """Cable c joins rank c, its lower end, to the next rank; cages are PCI function numbers.

    `networks` are by half: None where a function is lost at either end.
    """

    number: int
    lower: int
    upper: int
    lower_cage: int
    upper_cage: int
    networks: tuple[IPv4Network | None, ...]

    @property
    def halves(self) -> frozenset[int]:
        """The halves that can be used."""
        return frozenset(half for half, network in enumerate(self.networks) if network is not None)
