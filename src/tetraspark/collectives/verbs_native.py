"""The C structures of the RDMA lanes, and their library, loaded and checked once."""

import ctypes
from ctypes import (
    POINTER,
    Structure,
    c_char_p,
    c_int,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)
from enum import IntEnum
from functools import cache
from pathlib import Path

from tetraspark.collectives.binding import Signatures, bind
from tetraspark.collectives.build import Unit, build
from tetraspark.collectives.failure import BuildError
from tetraspark.collectives.native import Progress, Write
from tetraspark.collectives.routes import MAX_LANES, MAX_WORLD
from tetraspark.collectives.wiring import MAX_DEVICES

FOLDER = Path(__file__).parent
PARTS = ("failover.c", "verbs_lane.c", "verbs_queue_pair.c", "verbs_failover.c")
UNIT = Unit(
    FOLDER / "proxy_verbs.c",
    ("-libverbs", "-pthread"),
    before=tuple(FOLDER / name for name in PARTS),
)
HEADER = Path("/usr/include/infiniband/verbs.h")
ABI = 2
NO_DEVICE = 0xFFFFFFFF
MAIL_BYTES = 896
"""Room of one message between the two ends of a pair."""
LANE_BYTES = 376
"""Size of a lane's own state in C, which nobody reads from here but a test."""


class Phase(IntEnum):
    """How far a lane is: carrying; stopped; with a fresh queue pair; connected, unproven."""

    UP = 0
    DOWN = 1
    OFFERED = 2
    JOINED = 3


class FoundBy(IntEnum):
    """Who found a lane broken: this end, the peer, or the start, at which it was absent."""

    OWN = 0
    PEER = 1
    START = 2


class Event(IntEnum):
    """Classes of asynchronous events, as they are counted."""

    PORT_ERROR = 0
    PORT_ACTIVE = 1
    GID_CHANGE = 2
    QUEUE_PAIR = 3
    DEVICE_FATAL = 4
    OTHER = 5


class Status(Structure):
    """What a rank tells a peer of itself."""

    _fields_ = (
        ("doorbell", c_uint32),
        ("posted", c_uint32),
        ("completed", c_uint32),
        ("phase", c_uint32),
        ("acked", c_uint32 * MAX_LANES),
        ("beat", c_uint64),
    )


class VerbsConfig(Structure):
    """What the lanes are told once."""

    _fields_ = (
        *((name, c_uint32) for name in ("world", "rank", "lanes", "signal_every", "depth")),
        *((name, c_uint32) for name in ("timeout", "retries", "traffic_class", "service_level")),
        *((name, c_uint32) for name in ("beat_ms", "record_stride", "failover")),
        ("device", c_uint32 * MAX_LANES * MAX_WORLD),
        *((name, c_uint64) for name in ("base", "bytes", "progress", "status", "records")),
        ("abort_word", c_uint64),
        ("mail", c_uint64),
    )


class LaneState(Structure):
    """One lane: whether and why it is broken, what became of it, and what it has carried.

    `lost_at` and `back_at` are this rank's sequences when it last failed and carried again.
    """

    _fields_ = (
        *((name, c_uint32) for name in ("qp", "broken", "status", "vendor", "error", "event")),
        *((name, c_uint32) for name in ("found_by", "stuck", "generation", "phase", "failures")),
        *((name, c_uint32) for name in ("rejoined", "lost_at", "back_at")),
        *((name, c_uint64) for name in ("broken_ns", "settled_ns", "resent", "writes")),
        *((name, c_uint64) for name in ("signalled", "completions", "beats", "stalls")),
    )


class DeviceState(Structure):
    """One device: whether its port reported an error, and its events by class."""

    _fields_ = (("down", c_uint32), ("reserved", c_uint32), ("events", c_uint64 * len(Event)))


class Lanes(Structure):
    """The part of the C context that is read from here."""

    _fields_ = (
        ("state", LaneState * MAX_LANES * MAX_WORLD),
        ("device_state", DeviceState * MAX_DEVICES),
        ("polls", c_uint64),
        ("wakeups", c_uint64),
        ("error", ctypes.c_char * 256),
    )


class Remote(Structure):
    """The other end of one lane."""

    _fields_ = (
        *((name, c_uint32) for name in ("qp", "sequence_number", "mtu", "rkey")),
        ("base", c_uint64),
        ("gid", c_uint8 * 16),
    )


CONTEXT = POINTER(Lanes)
SIGNATURES: Signatures = {
    "tv_port_mtu": (c_uint32, [c_char_p, c_uint32]),
    "tv_open": (CONTEXT, [POINTER(VerbsConfig)]),
    "tv_add_device": (c_uint32, [CONTEXT, c_char_p, c_uint32, c_uint32, c_char_p]),
    "tv_add_lane": (c_uint32, [CONTEXT, c_uint32, c_uint32]),
    "tv_join": (c_int, [CONTEXT, c_uint32, c_uint32, c_uint32, POINTER(Remote)]),
    "tv_start": (c_int, [CONTEXT]),
    "tv_move": (c_int, [c_void_p, POINTER(Write)]),
    "tv_spread": (None, [CONTEXT]),
    "tv_flush": (c_int, [CONTEXT, c_uint64]),
    "tv_close": (None, [CONTEXT]),
    "tv_status_text": (c_char_p, [c_uint32]),
    "tv_event_text": (c_char_p, [c_uint32]),
}


def abi_numbers() -> list[int]:
    """Return the numbers that `tv_abi` of a matching library returns, in its order."""
    return [
        *(ABI, MAX_WORLD, MAX_LANES, MAX_DEVICES, ctypes.sizeof(Write), ctypes.sizeof(Progress)),
        *(Progress.acked.offset, ctypes.sizeof(Status), ctypes.sizeof(VerbsConfig)),
        *(VerbsConfig.base.offset, ctypes.sizeof(LaneState), ctypes.sizeof(DeviceState)),
        *(ctypes.sizeof(Remote), Remote.gid.offset, Lanes.device_state.offset, Lanes.error.offset),
        *(MAIL_BYTES, LANE_BYTES),
    ]


def load(path: Path) -> ctypes.CDLL:
    """Load a built library and declare its functions. Raises BuildError if its numbers differ."""
    return bind(path, "tv_abi", abi_numbers(), SIGNATURES, "is libibverbs1 there?")


@cache
def verbs() -> ctypes.CDLL:
    """Return the library of this process, built and verified once. Raises BuildError."""
    if not HEADER.exists():
        raise BuildError(f"{HEADER} is missing; apt-get install libibverbs-dev ibverbs-providers")
    return load(build(UNIT))
