"""What a NIC must be set to before it can relay, and how much may be sent through it as it is."""

from dataclasses import dataclass
from typing import Literal

QUEUE_SIZE = 8192
DEFAULT_QUEUE_SIZE = 1024
QUEUES = 4
STEERING = "hmfs"
TC_OFFLOAD = "on"

SMALL_CAP = 81_920
LARGE_CAP = 262_144
"""Largest payload in bytes of one operation over a relay whose queues hold 1024 and 8192 strides
of 64 bytes. Others measured them: with 1024, frames were lost from 100 KB on; with 8192, none at
480 KB and some at 960 KB. Not measured here."""


@dataclass(frozen=True)
class Requirement:
    """What the plan wants of one function; `queues` and `queue_size` need a driver reload."""

    netdev: str
    pci: str
    queues: int = QUEUES
    queue_size: int = QUEUE_SIZE
    steering: str = STEERING
    tc_offload: str = TC_OFFLOAD


@dataclass(frozen=True)
class QueueState:
    """The queues of one relaying function when the plan was made.

    `size` is what is in effect, in strides of 64 bytes; None where that could not be seen.
    """

    node: str
    netdev: str
    verdict: Literal["in effect", "default", "pending", "unknown"]
    size: int | None
    seen: str


@dataclass(frozen=True)
class Caps:
    """Largest payload of one operation that may cross a relay, in bytes.

    `now` follows from what is in effect, `after` holds once the requirements are met. `queues` are
    the functions that relay; without any, both caps are the large one.
    """

    now: int
    after: int
    queues: tuple[QueueState, ...]
