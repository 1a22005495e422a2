"""The C state machine of a failover, alone, as the model of the lanes drives it."""

import ctypes
from ctypes import POINTER, Structure, c_int, c_uint8, c_uint32, c_uint64, c_void_p
from functools import cache
from pathlib import Path

from tetraspark.collectives import build as builds
from tetraspark.collectives.binding import Signatures, bind
from tetraspark.collectives.native import Write
from tetraspark.collectives.routes import MAX_LANES

UNIT = builds.Unit(Path(builds.__file__).with_name("failover.c"))
NONE = 0xFFFFFFFF
UP, DOWN, OFFERED, JOINED = range(4)
NOTHING, STOP, OFFER, JOIN, PROVE = range(5)


class Offer(Structure):
    """How to reach a fresh queue pair."""

    _fields_ = (
        *((name, c_uint32) for name in ("qp", "sequence_number", "mtu", "rkey")),
        ("base", c_uint64),
        ("gid", c_uint8 * 16),
    )


class Question(Structure):
    """Whether the flag lies at a place."""

    _fields_ = (("place", c_uint64), ("flag", c_uint64))


class Line(Structure):
    """What an end says of one lane."""

    _fields_ = (
        *((name, c_uint32) for name in ("generation", "phase", "asked", "answered")),
        *((name, c_uint32) for name in ("arrived", "settled")),
        ("question", Question * 8),
        ("offer", Offer),
    )


class Message(Structure):
    """What an end says of all lanes."""

    _fields_ = (
        *((name, c_uint64) for name in ("check", "number")),
        *((name, c_uint32) for name in ("calm", "reserved")),
        ("lane", Line * MAX_LANES),
    )


class SentWrite(Structure):
    """A write, and the lane that took it."""

    _fields_ = (("write", Write), *((n, c_uint32) for n in ("lane", "lost", "arrived", "reserved")))


class Pair(Structure):
    """One end of a pair of ranks."""

    _fields_ = (
        ("own", Line * MAX_LANES),
        ("heard", Line * MAX_LANES),
        ("failed", c_uint32 * MAX_LANES),
        ("sent", SentWrite * MAX_LANES * 2),
        *((name, c_uint64) for name in ("said", "last_heard")),
        *((name, c_uint32) for name in ("lanes", "answer_due")),
        ("resent", c_uint64 * MAX_LANES),
    )


PAIR, MESSAGE = POINTER(Pair), POINTER(Message)
SIGNATURES: Signatures = {
    "tf_open": (None, [PAIR, c_uint32, c_uint32]),
    "tf_carries": (c_int, [PAIR, c_uint32]),
    "tf_carrier": (c_uint32, [PAIR, c_uint32]),
    "tf_gave": (None, [PAIR, POINTER(Write), c_uint32]),
    "tf_owed": (c_int, [PAIR, POINTER(Write)]),
    "tf_arrived": (c_int, [PAIR, POINTER(Write)]),
    "tf_fail": (None, [PAIR, c_uint32]),
    "tf_stopped": (None, [PAIR, c_uint32]),
    "tf_offered": (None, [PAIR, c_uint32, POINTER(Offer)]),
    "tf_joined": (None, [PAIR, c_uint32]),
    "tf_proven": (None, [PAIR, c_uint32]),
    "tf_wanted": (c_uint32, [PAIR, c_uint32]),
    "tf_peer": (POINTER(Offer), [PAIR, c_uint32]),
    "tf_calm": (c_int, [PAIR]),
    "tf_say": (c_int, [PAIR, MESSAGE]),
    "tf_think": (None, [PAIR, c_void_p, c_uint64]),
    "tf_hear": (c_int, [PAIR, MESSAGE, c_void_p, c_uint64]),
}


@cache
def failover() -> ctypes.CDLL:
    """Return the library, built and checked once."""
    sized = (Write, Offer, Line, Message, Pair)
    numbers = [MAX_LANES, 8, *map(ctypes.sizeof, sized), Pair.failed.offset, Pair.resent.offset]
    return bind(builds.build(UNIT), "tf_abi", numbers, SIGNATURES, "remove it")
