"""What the RDMA transport can be told, checked at construction."""

from dataclasses import dataclass

from tetraspark.collectives.local_lane import MTUS
from tetraspark.collectives.routes import MAX_LANES

ACK_UNIT_S = 4.096e-6
"""A queue pair's `timeout` t means 4.096 us x 2^t (InfiniBand specification)."""


@dataclass(frozen=True)
class VerbsOptions:
    """Settings of every lane, equal on every rank.

    `min_mtu`: smallest active RDMA MTU, bytes. `timeout`, `retries`: of the connection; 7 retries
    are refused, since some drivers then retry for ever. `signal_every`: stripes of a lane for one
    completion. `depth`: entries of a send queue. `beat_ms`: how often a lane is proven alive and
    peers are told of progress, milliseconds. `stale_s`: a peer whose lanes acknowledge and whose
    status has not changed for so long is stopped. `min_lanes`: lanes to a peer that are enough,
    at the start and later; 0 wants all that are wired, so that a lost lane fails the group.
    """

    min_mtu: int = 4096
    timeout: int = 14
    retries: int = 6
    signal_every: int = 8
    depth: int = 128
    traffic_class: int = 0
    service_level: int = 0
    beat_ms: int = 50
    stale_s: float = 0.5
    min_lanes: int = 0

    def __post_init__(self) -> None:
        if self.min_mtu not in MTUS:
            raise ValueError(f"min_mtu {self.min_mtu}: wanted one of {MTUS}")
        for name, low, high in (
            ("timeout", 8, 20),
            ("retries", 1, 6),
            ("signal_every", 1, 16),
            ("depth", 64, 4096),
            ("traffic_class", 0, 255),
            ("service_level", 0, 7),
            ("beat_ms", 10, 1000),
            ("min_lanes", 0, MAX_LANES),
        ):
            if not low <= getattr(self, name) <= high:
                raise ValueError(f"{name} {getattr(self, name)}: wanted {low}..{high}")
        if self.stale_s < 4 * self.beat_ms / 1000:
            raise ValueError(f"stale_s {self.stale_s}: wanted at least four beats")

    def needed(self, wired: int) -> int:
        """Return how many of a pair's `wired` lanes must work."""
        return min(self.min_lanes, wired) or wired

    @property
    def give_up_s(self) -> float:
        """Nominal seconds after which an unanswered write fails; a device may take 4 times that."""
        return float((self.retries + 1) * ACK_UNIT_S * (1 << self.timeout))
