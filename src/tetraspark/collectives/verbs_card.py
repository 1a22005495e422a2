"""What one rank tells the others so that they can reach it: a JSON value, checked when read."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tetraspark.collectives.message import built, seal, unseal

MTUS = (256, 512, 1024, 2048, 4096)
GID_DIGITS = 32
NAME = "rdma-card"


@dataclass(frozen=True)
class DeviceCard:
    """One device: its GID (hex), active MTU in bytes, and the key of the region it registered.

    `absent` says why it carries nothing at the start, "" where it does.
    """

    name: str
    gid: str
    mtu: int
    rkey: int
    absent: str = ""

    def __post_init__(self) -> None:
        if len(self.gid) != GID_DIGITS or set(self.gid) - set("0123456789abcdef"):
            raise ValueError(f"an {NAME} with GID {self.gid[:GID_DIGITS]!r}")
        # The MTU of a device that carries nothing is not known yet.
        if self.mtu not in MTUS and not (self.absent and self.mtu == 0):
            raise ValueError(f"an {NAME} with an MTU of {self.mtu} bytes")
        _fits(32, rkey=self.rkey)


@dataclass(frozen=True)
class Card:
    """One rank. `lanes` are (queue pair, first sequence number) by peer and lane, 0 where absent.

    `wiring` and `options` must be equal on every rank. `base` is the region's address there.
    """

    node: str
    wiring: str
    options: Mapping[str, Any]
    base: int
    devices: tuple[DeviceCard, ...]
    lanes: Mapping[int, tuple[tuple[int, int], ...]]

    def __post_init__(self) -> None:
        _fits(64, base=self.base)
        for lanes in self.lanes.values():
            for number, first in lanes:
                _fits(24, queue_pair=number, sequence_number=first)

    def to_bytes(self) -> bytes:
        """Encode for the exchange."""
        return seal(NAME, asdict(self))

    @classmethod
    def from_bytes(cls, data: bytes) -> "Card":
        """Decode. Raises ValueError if it is not a card."""
        found = unseal(NAME, data)
        try:
            found["devices"] = tuple(built(DeviceCard, NAME, one) for one in found["devices"])
            found["lanes"] = {
                int(peer): tuple((qp, number) for qp, number in lanes)
                for peer, lanes in found["lanes"].items()
            }
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"an {NAME} that names no devices or lanes: {error}") from error
        return built(cls, NAME, found)

    def lane_of(self, peer: int, lane: int) -> tuple[int, int]:
        """Return the queue pair and first number to a peer. Raises ValueError without them."""
        lanes = self.lanes.get(peer, ())
        if lane >= len(lanes):
            raise ValueError(f"node {self.node} has no lane {lane} to rank {peer}")
        return lanes[lane]

    def device(self, index: int) -> DeviceCard:
        """Return a device. Raises ValueError when there are fewer."""
        if index >= len(self.devices):
            raise ValueError(f"node {self.node} has no device {index}")
        return self.devices[index]


def check_cards(own: Card, cards: list[Card]) -> None:
    """Raise ValueError, naming the node, unless every rank has the same wiring and options."""
    for card in cards:
        if card.wiring != own.wiring:
            raise ValueError(f"node {card.node} has another wiring than {own.node}")
        for name, value in own.options.items():
            seen = card.options.get(name)
            if seen != value:
                raise ValueError(f"node {card.node} has {name} {seen}, {own.node} has {value}")


def _fits(bits: int, **values: object) -> None:
    for name, value in values.items():
        if type(value) is not int or not 0 <= value < 1 << bits:
            raise ValueError(f"an {NAME} with {name} {str(value)[:40]!r}: wanted {bits} bits")
