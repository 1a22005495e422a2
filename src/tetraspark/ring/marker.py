"""Markers: what tags a node's own RDMA frames, by the address they go to."""

from dataclasses import dataclass
from ipaddress import IPv4Address

from tetraspark.ring.tag import tag


@dataclass(frozen=True)
class Mark:
    """Frames to `destination` leave with `relays` before them."""

    destination: IPv4Address
    relays: int

    @property
    def ethertype(self) -> int:
        """The EtherType they leave with."""
        return tag(self.relays)


@dataclass(frozen=True)
class Marker:
    """The marks of one RDMA device; one program for each device holds them while it runs.

    By destination and not by UDP port: a port is hashed from a flow label, so that of a frame to a
    neighbour may be the one that was chosen as a mark.
    """

    rdma: str
    netdev: str
    marks: tuple[Mark, ...]
