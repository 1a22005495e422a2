"""One rank's end of the protocol: a thin, typed face of the C proxy."""

import ctypes
from typing import Any

from tetraspark.collectives import native
from tetraspark.collectives.failure import RECORD_BYTES
from tetraspark.collectives.flags import Flag, next_sequence
from tetraspark.collectives.layout import ABORT, ARRIVALS, PROGRESS, WAITING, Layout
from tetraspark.collectives.library import proxy
from tetraspark.collectives.routes import Routes


def configure(
    layout: Layout,
    routes: Routes,
    rank: int,
    bases: list[int],
    *,
    direct: bool,
    pull: bool,
    start_sequence: int,
    spins: int,
    yields: int,
) -> native.Config:
    """Return the C configuration of one rank; `bases` are region addresses, 0 where not mapped."""
    config = native.Config(
        world=layout.world,
        rank=rank,
        lanes=layout.lanes,
        direct=direct,
        pull=pull,
        start_sequence=start_sequence,
        spins=spins,
        yields=yields,
        progress=PROGRESS,
        arrivals=ARRIVALS,
        waiting=WAITING,
        abort_word=ABORT,
        flags=layout.flags,
        send=layout.send,
        send_gather=layout.send_gather,
        recv=layout.recv,
        recv_gather=layout.recv_gather,
        slot_stride=layout.slot_stride,
        gather_stride=layout.gather_stride,
        send_chunk=layout.send_chunk,
        recv_chunk=layout.recv_chunk,
        chunk_stride=layout.chunk_stride,
        outbox=layout.outbox,
    )
    config.base[: layout.world] = bases
    for peer in range(layout.world):
        if peer != rank:
            order = routes.between(rank, peer)
            config.route_count[peer] = len(order)
            config.route[peer][: len(order)] = order
    return config


class Endpoint:
    """Begins, polls and waits for one operation at a time. Addresses must outlive it."""

    def __init__(self, layout: Layout, config: native.Config) -> None:
        self._layout = layout
        self._library = proxy()
        self._handle = self._library.ts_open(ctypes.byref(config))
        if not self._handle:
            raise MemoryError("no memory for an endpoint")
        self.state: native.EndpointState = self._handle.contents
        self.progress = native.Progress.from_address(config.base[config.rank] + PROGRESS)

    def handle(self) -> Any:
        """Return the proxy's own endpoint. Raises RuntimeError once this is closed."""
        if self._handle is None:
            raise RuntimeError("the group is closed")
        return self._handle

    @property
    def sequence(self) -> int:
        """Sequence of the last operation begun, by the proxy or by a kernel."""
        return int(self.progress.doorbell)

    @property
    def busy(self) -> bool:
        """Whether an operation has been begun and is not complete."""
        return bool(self.progress.completed != self.progress.doorbell)

    def next_sequence(self) -> int:
        """Return the sequence that the next operation will have."""
        return next_sequence(self.sequence)

    def begin(self, request: native.Request) -> int:
        """Stage and post one operation; returns PENDING, FAILED, ABORTED or BUSY."""
        return int(self._library.ts_begin(self.handle(), ctypes.byref(request)))

    def run(self, request: native.Request, nanoseconds: int) -> int:
        """Begin, then wait at most `nanoseconds`; returns DONE or as `begin` does."""
        return int(self._library.ts_run(self.handle(), ctypes.byref(request), nanoseconds))

    def poll(self) -> int:
        """Look once; returns DONE, PENDING, FAILED or ABORTED."""
        return int(self._library.ts_poll(self.handle()))

    def wait(self, nanoseconds: int) -> int:
        """Wait at most `nanoseconds` without the GIL; returns as `poll` does."""
        return int(self._library.ts_wait(self.handle(), nanoseconds))

    def take(self) -> native.Write | None:
        """Return the oldest write not yet posted, for a queued transport; None if there is none."""
        write = native.Write()
        return write if self._library.ts_take(self.handle(), ctypes.byref(write)) else None

    def complete(self, write: native.Write, *, acknowledged: bool) -> None:
        """Report one taken write: acknowledged, or failed on its lane."""
        self._library.ts_complete(self.handle(), ctypes.byref(write), acknowledged)

    def missing(self, peer: int) -> tuple[int, ...]:
        """Return the stripes of the operation under way that have not arrived from a peer.

        Read from the region, so it holds for an operation that a kernel runs as well.
        """
        if not self.busy:
            return ()
        sequence = self.sequence
        stripes = range(self.state.config.route_count[peer])
        return tuple(i for i in stripes if self._flag(peer, i) >> 32 != sequence)

    def _flag(self, peer: int, stripe: int) -> int:
        rank = self.state.config.rank
        offset = self._layout.flag_at(rank, peer, self.sequence & 1, stripe)
        return ctypes.c_uint64.from_address(self.state.config.base[rank] + offset).value

    def acked(self, peer: int) -> dict[int, int]:
        """Return the last sequence acknowledged on each lane to a peer.

        On a direct transport a write is a store: it has arrived once it is posted.
        """
        lanes = self.lanes_to(peer)
        if self.state.config.direct:
            return dict.fromkeys(lanes, int(self.progress.posted))
        return {lane: int(self.progress.acked[peer][lane]) for lane in lanes}

    def lanes_to(self, peer: int) -> tuple[int, ...]:
        """Return the ordered lanes to a peer."""
        config = self.state.config
        return tuple(config.route[peer][: config.route_count[peer]])

    def nbytes(self) -> int:
        """Return this rank's bytes in the last operation begun."""
        return int(self.state.request.bytes[self.state.config.rank])

    def shape(self) -> tuple[int, ...]:
        """Return this rank's shape in the last operation begun."""
        return tuple(self.state.request.dims[: self.state.request.ndim])

    def describe_failure(self) -> str:
        """Return both sides of what the proxy found wrong."""
        failure, rank = self.state.failure, self.state.config.rank
        mine = f"rank {rank} has {Flag.unpack(failure.mine).describe(self.shape())}"
        if failure.kind == native.LANE_ERROR:
            return f"the write failed on the lane; {mine}"
        if failure.kind == native.OVERFLOW:
            return f"the queue of writes is full; {mine}"
        shape = tuple(failure.dims[: failure.ndim]) if failure.ndim else None
        theirs = Flag.unpack(failure.theirs)
        text = f"{mine}, rank {failure.peer} has {theirs.describe(shape)}"
        if failure.mine == failure.theirs and shape == self.shape():
            text += "; they list different sizes for the group"
        return text if theirs.sequence == failure.sequence else f"{text} at {theirs.sequence}"

    def read_record(self, offset: int) -> bytes | None:
        """Return a record of the own region; None when there is none."""
        buffer = ctypes.create_string_buffer(RECORD_BYTES)
        word = self._library.ts_read_record(self.handle(), offset, buffer, RECORD_BYTES)
        return buffer.raw[: word - 1] if word else None

    def leave_record(self, rank: int, offset: int, data: bytes, *, alarm: bool) -> None:
        """Write a record into a mapped region; `alarm` raises its abort word and wakes it.

        Raises ValueError for one that has no room.
        """
        if len(data) > RECORD_BYTES:
            raise ValueError(f"a record of {len(data)} bytes: wanted at most {RECORD_BYTES}")
        self._library.ts_leave_record(
            self.handle(), rank, offset, data, len(data), len(data) + 1, alarm
        )

    def set_mover(self, mover: int, context: int) -> None:
        """Post writes through a C function as they are begun; both arguments are addresses."""
        self._library.ts_set_mover(self.handle(), mover, context)

    def copy_queued(self) -> None:
        """Copy queued writes into peers' regions, which must be mapped here."""
        mover = ctypes.cast(self._library.ts_copy, ctypes.c_void_p).value
        handle = ctypes.cast(self.handle(), ctypes.c_void_p).value
        assert mover is not None and handle is not None
        self.set_mover(mover, handle)

    def set_phase(self, phase: int) -> None:
        """Publish the phase of this rank."""
        self._library.ts_set_phase(self.handle(), phase)

    def close(self) -> None:
        """Free the endpoint; what it counted stays readable, anything else raises RuntimeError."""
        if self._handle is not None:
            opened, self._handle = self._handle, None
            self.state = native.EndpointState.from_buffer_copy(self.state)
            self.progress = native.Progress.from_buffer_copy(self.progress)
            self._library.ts_close(opened)
