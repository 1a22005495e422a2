"""A frame on its way through a simulated ring: what a NIC can see of it."""

from dataclasses import dataclass
from ipaddress import IPv4Address

from tetraspark.ring.tag import IPV4


@dataclass(frozen=True)
class Frame:
    """A frame's Ethernet header, and the addresses in its IPv4 header."""

    destination_mac: str
    source_mac: str
    ethertype: int
    source: IPv4Address
    destination: IPv4Address

    @property
    def plain(self) -> bool:
        """Whether nobody is to relay it."""
        return self.ethertype == IPV4
