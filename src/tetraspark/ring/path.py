"""Paths: how frames of one rank reach another over one lane, device by device."""

from dataclasses import dataclass
from ipaddress import IPv4Address


@dataclass(frozen=True)
class Relay:
    """A node on the way: frames come in on one device and its NIC sends them out of another."""

    rank: int
    netdev_in: str
    netdev_out: str


@dataclass(frozen=True)
class Path:
    """One direction of a lane, out of `netdev` of rank `source` to that of rank `target`.

    `half` is which of a cage's two functions it uses on every node, and `cables` are what it
    crosses, in order. `gateway` is the address at the other end of the first cable: the target's
    own where nobody relays.
    """

    source: int
    target: int
    lane: int
    half: int
    cables: tuple[int, ...]
    netdev: str
    address: IPv4Address
    gateway: IPv4Address
    relays: tuple[Relay, ...]
    target_netdev: str
    target_address: IPv4Address

    @property
    def ranks(self) -> tuple[int, ...]:
        """Everyone on the way, both ends included."""
        return (self.source, *(one.rank for one in self.relays), self.target)
