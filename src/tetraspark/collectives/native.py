"""The C structures and constants of the proxy, as the proxy declares them."""

from ctypes import Structure, c_uint32, c_uint64, c_void_p

from tetraspark.collectives.routes import MAX_LANES, MAX_WORLD

ABI = 4
MAX_DIMS = 8
QUEUE = 64
MARK_UNITS = 16
"""Offset of a mark's units in its line of the outbox."""

DONE, PENDING, FAILED, ABORTED, BUSY = range(5)
MISMATCH, DIVERGED, LANE_ERROR, OVERFLOW, STALE_HEADER = range(1, 6)


class Header(Structure):
    """First line of a slot: the sender's flag and exact shape."""

    _fields_ = (
        ("flag", c_uint64),
        ("ndim", c_uint32),
        ("dims", c_uint32 * MAX_DIMS),
        ("sizes", c_uint32),
        ("digest", c_uint64),
        ("reserved", c_uint32 * 18),
    )


class Progress(Structure):
    """How far the owner of a region is: two lines of it."""

    _fields_ = (
        ("doorbell", c_uint32),
        ("posted", c_uint32),
        ("completed", c_uint32),
        ("phase", c_uint32),
        ("reserved", c_uint32 * 28),
        ("acked", c_uint32 * MAX_LANES * MAX_WORLD),
    )


class Config(Structure):
    """What an endpoint is told once."""

    _fields_ = (
        ("world", c_uint32),
        ("rank", c_uint32),
        ("lanes", c_uint32),
        ("direct", c_uint32),
        ("pull", c_uint32),
        ("start_sequence", c_uint32),
        ("spins", c_uint32),
        ("yields", c_uint32),
        ("route_count", c_uint32 * MAX_WORLD),
        ("route", c_uint32 * MAX_LANES * MAX_WORLD),
        ("base", c_uint64 * MAX_WORLD),
        ("progress", c_uint64),
        ("arrivals", c_uint64),
        ("waiting", c_uint64),
        ("abort_word", c_uint64),
        ("flags", c_uint64),
        ("send", c_uint64),
        ("send_gather", c_uint64),
        ("recv", c_uint64),
        ("recv_gather", c_uint64),
        ("slot_stride", c_uint64),
        ("gather_stride", c_uint64),
        ("send_chunk", c_uint64),
        ("recv_chunk", c_uint64),
        ("chunk_stride", c_uint64),
        ("outbox", c_uint64),
    )


class Request(Structure):
    """One operation: what this rank sends, what it expects of each peer, where results go.

    `bytes` is what each rank's flag says. Of a gather, `row_bytes` and `out_offset` are the width
    and place of each rank's shard in a row of the result; of an operation on chunks they are the
    bytes and the place of each rank's chunk in the flat tensor, both as it is sent and as it is
    put together again.
    """

    _fields_ = (
        ("op", c_uint32),
        ("dtype", c_uint32),
        ("ndim", c_uint32),
        ("rows", c_uint32),
        ("dims", c_uint32 * MAX_DIMS),
        ("last", c_uint32 * MAX_WORLD),
        ("bytes", c_uint64 * MAX_WORLD),
        ("row_bytes", c_uint64 * MAX_WORLD),
        ("out_offset", c_uint64 * MAX_WORLD),
        ("out_stride", c_uint64),
        ("input", c_void_p),
        ("output", c_void_p),
    )


class Write(Structure):
    """One stripe to move by a queued transport: payload first, then its flag."""

    _fields_ = (
        ("peer", c_uint32),
        ("lane", c_uint32),
        ("stripe", c_uint32),
        ("sequence", c_uint32),
        ("source", c_uint64),
        ("target", c_uint64),
        ("bytes", c_uint64),
        ("flag_target", c_uint64),
        ("flag", c_uint64),
    )


class NativeFailure(Structure):
    """What the proxy found wrong."""

    _fields_ = (
        ("kind", c_uint32),
        ("peer", c_uint32),
        ("lane", c_uint32),
        ("sequence", c_uint32),
        ("mine", c_uint64),
        ("theirs", c_uint64),
        ("ndim", c_uint32),
        ("dims", c_uint32 * MAX_DIMS),
        ("reserved", c_uint32),
    )


class Counters(Structure):
    """Totals since the endpoint was opened."""

    _fields_ = (
        ("operations", c_uint64),
        ("spins", c_uint64),
        ("yields", c_uint64),
        ("sleeps", c_uint64),
        ("wakes", c_uint64),
        ("writes", c_uint64 * MAX_LANES * MAX_WORLD),
        ("bytes", c_uint64 * MAX_LANES * MAX_WORLD),
    )


class RelayState(Structure):
    """What a relay has counted: the first fields of it, read while it runs."""

    _fields_ = (("marks", c_uint64), ("stalls", c_uint64), ("naps", c_uint64))


class EndpointState(Structure):
    """The endpoint itself; read by the supervisor, written only by the proxy."""

    _fields_ = (
        ("config", Config),
        ("request", Request),
        ("failure", NativeFailure),
        ("counters", Counters),
        ("sequence", c_uint32),
        ("pending", c_uint32),
        ("failed", c_uint32),
        ("missing", c_uint32 * MAX_WORLD),
        ("expected", c_uint64 * MAX_WORLD),
        ("queue", Write * QUEUE),
        ("queue_head", c_uint32),
        ("queue_tail", c_uint32),
        ("mover", c_void_p),
        ("mover_context", c_void_p),
    )
