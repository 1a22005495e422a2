"""Traffic for a verification: what is sent over one path, and what came of it."""

from dataclasses import dataclass
from typing import Protocol

from tetraspark.ring.path import Path


@dataclass(frozen=True)
class Sent:
    """What went over a path: packets as the sender counts them, and how it ended, in words.

    The hashes are of the payload at both ends, None where the program does not look at it.
    """

    packets: int
    delivered: bool
    seen: str
    sent_sha256: str | None = None
    received_sha256: str | None = None


class Traffic(Protocol):
    """Something that sends RDMA frames over a path, both ends of it."""

    @property
    def name(self) -> str:
        """What it is, for the receipt."""
        ...

    def send(self, path: Path) -> Sent:
        """Send over one path, from its source to its target. Raises RunError."""
        ...
