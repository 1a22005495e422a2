"""What a person chooses of a ring plan."""

from dataclasses import dataclass, field
from ipaddress import IPv4Network

BASES = (IPv4Network("10.10.0.0/16"), IPv4Network("10.11.0.0/16"))


@dataclass(frozen=True)
class LostFunction:
    """A function that is planned around, by network or RDMA device."""

    node: str
    device: str

    def __str__(self) -> str:
        return f"{self.node}:{self.device}"


@dataclass(frozen=True)
class RingOptions:
    """`bases` are where the networks come from: cable c, half f gets the c-th /24 of base f.

    `devices` are by node the devices that may be used, by network or RDMA name; a node that is
    not in it uses every RDMA device. `lost_cable` is the number of a cable to plan without: what
    is left is a line. Raises ValueError for two losses at once.
    """

    bases: tuple[IPv4Network, ...] = BASES
    devices: dict[str, tuple[str, ...]] = field(default_factory=dict)
    lost_cable: int | None = None
    lost_function: LostFunction | None = None

    def __post_init__(self) -> None:
        if self.lost_cable is not None and self.lost_function is not None:
            raise ValueError("a plan is made around one loss")

    @property
    def lost(self) -> str:
        """What is planned around, in words; "" for nothing."""
        if self.lost_cable is not None:
            return f"cable {self.lost_cable}"
        return f"function {self.lost_function}" if self.lost_function else ""
