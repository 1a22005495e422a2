"""The proxy's library: loaded once, its numbers checked before anything else is called."""

import ctypes
from ctypes import POINTER, c_int, c_uint32, c_uint64, c_void_p
from functools import cache
from pathlib import Path

from tetraspark.collectives.binding import Signatures, bind
from tetraspark.collectives.build import build
from tetraspark.collectives.layout import LINE
from tetraspark.collectives.native import (
    ABI,
    MAX_DIMS,
    QUEUE,
    Config,
    Counters,
    EndpointState,
    Header,
    NativeFailure,
    Progress,
    RelayState,
    Request,
    Write,
)
from tetraspark.collectives.routes import MAX_LANES, MAX_WORLD

ENDPOINT = POINTER(EndpointState)
RELAY = POINTER(RelayState)
SIGNATURES: Signatures = {
    "ts_flag_pack": (c_uint64, [c_uint32] * 4),
    "ts_flag_unpack": (None, [c_uint64, POINTER(c_uint32)]),
    "ts_next_sequence": (c_uint32, [c_uint32]),
    "ts_reduce": (c_int, [c_void_p, POINTER(c_void_p), c_uint32, c_uint32, c_uint64]),
    "ts_open": (ENDPOINT, [POINTER(Config)]),
    "ts_close": (None, [ENDPOINT]),
    "ts_begin": (c_int, [ENDPOINT, POINTER(Request)]),
    "ts_poll": (c_int, [ENDPOINT]),
    "ts_wait": (c_int, [ENDPOINT, c_uint64]),
    "ts_run": (c_int, [ENDPOINT, POINTER(Request), c_uint64]),
    "ts_relay_open": (RELAY, [ENDPOINT, c_uint64]),
    "ts_relay_start": (c_int, [RELAY]),
    "ts_relay_step": (c_uint32, [RELAY]),
    "ts_relay_close": (None, [RELAY]),
    "ts_take": (c_int, [ENDPOINT, POINTER(Write)]),
    "ts_complete": (None, [ENDPOINT, POINTER(Write), c_int]),
    "ts_set_mover": (None, [ENDPOINT, c_void_p, c_void_p]),
    "ts_set_phase": (None, [ENDPOINT, c_uint32]),
    "ts_read_record": (c_uint64, [ENDPOINT, c_uint64, c_void_p, c_uint32]),
    "ts_leave_record": (
        None,
        [ENDPOINT, c_uint32, c_uint64, c_void_p, c_uint32, c_uint64, c_int],
    ),
}


def abi_numbers() -> list[int]:
    """Return the numbers that `ts_abi` of a matching library returns, in its order."""
    sized = (Header, Progress, Config, Request, Write, NativeFailure, Counters, EndpointState)
    placed = (
        Progress.acked,
        Config.base,
        Config.slot_stride,
        Config.outbox,
        Request.bytes,
        Request.output,
        Write.flag,
        NativeFailure.dims,
        Counters.bytes,
        EndpointState.failure,
        EndpointState.counters,
        EndpointState.sequence,
        EndpointState.missing,
    )
    constants = [ABI, LINE, MAX_WORLD, MAX_LANES, MAX_DIMS, QUEUE]
    return constants + [ctypes.sizeof(kind) for kind in sized] + [field.offset for field in placed]


def load(path: Path) -> ctypes.CDLL:
    """Load a built proxy and declare its functions. Raises BuildError if its numbers differ."""
    return bind(path, "ts_abi", abi_numbers(), SIGNATURES, "remove it")


@cache
def proxy() -> ctypes.CDLL:
    """Return the proxy of this process, built and verified once. Raises BuildError."""
    return load(build())
