"""How a node reaches an address that is not on its own cables: a route and a neighbour."""

from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Literal

PROTOCOL = 116
"""Who made a route or a neighbour, as the kernel notes it (rtm_protocol, NDA_PROTOCOL); assigned
to nobody in linux/rtnetlink.h, so what carries it is ours."""

Verb = Literal["add", "replace", "del"]


@dataclass(frozen=True)
class HostRoute:
    """A /32 to the address of another node, out of a device and as if it were on the link."""

    destination: IPv4Address
    netdev: str
    source: IPv4Address

    def argv(self, verb: Verb) -> tuple[str, ...]:
        """Return the `ip route` command that adds, replaces or deletes it."""
        place = ("dev", self.netdev, "scope", "link", "src", str(self.source))
        owner = ("proto", str(PROTOCOL))
        return ("ip", "route", verb, f"{self.destination}/32", *place, *owner)


@dataclass(frozen=True)
class PermanentNeighbour:
    """The card that stands for an address on a device: the adjacent node's, which relays."""

    address: IPv4Address
    netdev: str
    mac: str

    def argv(self, verb: Verb) -> tuple[str, ...]:
        """Return the `ip neigh` command that adds, replaces or deletes it."""
        where = ("ip", "neigh", verb, str(self.address), "dev", self.netdev)
        if verb == "del":
            return where
        return (*where, "lladdr", self.mac, "nud", "permanent", "protocol", str(PROTOCOL))
