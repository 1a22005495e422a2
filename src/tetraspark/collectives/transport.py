"""What a transport does for the protocol; shm, verbs and fake are behind it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol

from tetraspark.collectives.endpoint import Endpoint
from tetraspark.collectives.failure import Kind
from tetraspark.collectives.layout import Layout
from tetraspark.collectives.liveness import Life


class Phase(IntEnum):
    """What a rank says of itself in its progress line."""

    OPENING = 0
    SERVING = 1
    CLOSING = 2


@dataclass(frozen=True)
class Seen:
    """A peer's progress as known here: sequences, its phase, and its acknowledgements from us.

    `acked[lane]` is the last sequence that this rank acknowledged to the peer on a lane.
    """

    doorbell: int
    posted: int
    completed: int
    phase: int
    acked: tuple[int, ...]


@dataclass(frozen=True)
class Finding:
    """What a transport itself knows to be broken; `peer` is the rank to blame, maybe this one."""

    kind: Kind
    peer: int
    lane: int
    detail: str


class Transport(Protocol):
    """Moves stripes and records, and knows whether peers live.

    Contract: on one lane to one peer, writes arrive in order, a stripe before its flag, and an
    old write never lands after a newer one. Between lanes there is no order.

    A `direct` transport maps peers' regions: the proxy stores into them itself. Any other takes
    the proxy's writes with `ts_take` and reports them with `ts_complete`. `pull`: a direct
    transport whose readers use the sender's slot in place.
    """

    @property
    def name(self) -> str:
        """Name in votes and reports."""

    @property
    def direct(self) -> bool:
        """Whether peers' regions are mapped here."""

    @property
    def pull(self) -> bool:
        """Whether send slots are read in place."""

    def open(self, layout: Layout) -> bytes:
        """Make this rank's region, zeroed; return the card peers need to reach it."""

    def connect(self, cards: Sequence[bytes]) -> list[int]:
        """Reach every peer; return region addresses, 0 where a region is not mapped."""

    def seal(self) -> None:
        """Every rank is connected: remove what only connecting needed."""

    def attach(self, endpoint: Endpoint) -> None:
        """Serve this endpoint from now on."""

    def now(self) -> float:
        """Return seconds of a clock that never goes back."""

    def pause(self, seconds: float) -> None:
        """Let time pass where nothing can be waited for."""

    def seen(self, peer: int) -> Seen | None:
        """Return what is known of a peer's progress; None when it never reported."""

    def life(self, peer: int) -> Life:
        """Return whether a peer's process lives."""

    def finding(self) -> Finding | None:
        """Return what is broken for good, None while nothing is. Cheap: asked in every wait."""

    def details(self) -> dict[str, Any]:
        """Return what a status command shows of this transport alone, JSON-able."""

    def leave_record(self, data: bytes) -> None:
        """Leave this rank's record in its own and every peer's region, and raise the alarm."""

    def close(self) -> None:
        """Release everything. Safe to call twice and after a failed open."""
