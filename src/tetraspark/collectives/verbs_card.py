"""What one rank tells the others so that they can reach it: a JSON value, checked when read."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


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

    def to_bytes(self) -> bytes:
        """Encode for the exchange."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Card":
        """Decode. Raises ValueError if it is not a card."""
        try:
            found = json.loads(data)
            found["devices"] = tuple(DeviceCard(**one) for one in found["devices"])
            found["lanes"] = {
                int(peer): tuple((qp, number) for qp, number in lanes)
                for peer, lanes in found["lanes"].items()
            }
            return cls(**found)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not an RDMA card: {error}") from error


def check_cards(own: Card, cards: list[Card]) -> None:
    """Raise ValueError, naming the node, unless every rank has the same wiring and options."""
    for card in cards:
        if card.wiring != own.wiring:
            raise ValueError(f"node {card.node} has another wiring than {own.node}")
        for name, value in own.options.items():
            seen = card.options.get(name)
            if seen != value:
                raise ValueError(f"node {card.node} has {name} {seen}, {own.node} has {value}")
