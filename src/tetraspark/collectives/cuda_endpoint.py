"""What the kernels do, as the supervisor sees it: the proxy's endpoint, fed from the region."""

import ctypes
import threading

from tetraspark.collectives import native
from tetraspark.collectives.cuda_state import ABORTED, DEADLINE, Report
from tetraspark.collectives.endpoint import Endpoint
from tetraspark.collectives.flags import UNIT, Flag
from tetraspark.collectives.layout import ABORT, Layout


class CudaEndpoint(Endpoint):
    """Takes over an opened endpoint: from then on only kernels run operations.

    `poll` copies what the kernels published (doorbell, header, flags, report) into the endpoint's
    state, where the supervisor looks. It never waits for the GPU.
    """

    def __init__(self, proxy: Endpoint, layout: Layout, report: Report) -> None:
        # The handle is shared; `proxy` must not be used or closed any more.
        self._library = proxy._library
        self._handle = proxy._handle
        self.state = proxy.state
        self.progress = proxy.progress
        self._layout = layout
        self._report = report
        self._barrier = threading.Lock()

    @property
    def verdict(self) -> int:
        """Kind of the report, 0 while there is none."""
        return int(self._report.kind) if self._report.valid else 0

    @property
    def aborted(self) -> bool:
        """Whether the abort word of this rank's region is raised."""
        return bool(self._abort_word().value)

    def late_peer(self) -> tuple[int, int, float]:
        """Return the peer, its lane and the seconds waited of a report of the device's clock."""
        report = self._report
        lane = self.state.config.route[report.peer][report.stripe]
        return report.peer, lane, report.waited_ns / 1e9

    def poll(self) -> int:
        """Look once; returns DONE (nothing in flight), PENDING, FAILED or ABORTED."""
        self._refresh()
        if self._report.valid:
            return self._fail()
        if self.state.pending:
            return native.PENDING
        return native.DONE

    def begin(self, request: native.Request) -> int:
        """Refuse: the CPU would use the kernels' slots and sequences."""
        raise RuntimeError("this group's operations run on the GPU")

    run = wait = begin  # type: ignore[assignment]  # the same refusal, whatever the arguments

    def leave_record(self, rank: int, offset: int, data: bytes, *, alarm: bool) -> None:
        """Write a record; the own abort word is raised too, since own kernels poll it."""
        own = rank == self.state.config.rank
        super().leave_record(rank, offset, data, alarm=alarm or own)

    def abort_own(self) -> None:
        """Raise the abort word of this rank's region, so that its kernels end their waits."""
        word = self._abort_word()
        word.value = word.value or self.state.config.rank + 1

    def _abort_word(self) -> ctypes.c_uint64:
        return ctypes.c_uint64.from_address(self._region(self.state.config.rank) + ABORT)

    def _refresh(self) -> None:
        state, rank = self.state, self.state.config.rank
        state.sequence = self.progress.doorbell
        state.pending = int(self.progress.completed != state.sequence)
        flag, shape = self._header(self._sent(rank), state.sequence)
        if flag is not None:
            state.request.op, state.request.ndim = flag.op, len(shape)
            state.request.dims[: len(shape)] = shape
            state.request.bytes[rank] = flag.units * UNIT

    def _region(self, rank: int) -> int:
        return int(self.state.config.base[rank])

    def _sent(self, rank: int) -> list[tuple[int, int]]:
        """Return where the send slots of each area begin, and how far apart they are."""
        layout, region = self._layout, self._region(rank)
        return [
            (region + layout.send, layout.slot_stride),
            (region + layout.send_gather, layout.gather_stride),
            (region + layout.send_chunk, (layout.world - 1) * layout.chunk_stride),
        ]

    def _told(self, peer: int) -> list[tuple[int, int]]:
        """Return, in the same way, where what a peer staged can be read here."""
        if self.state.config.direct:
            return self._sent(peer)
        layout, rank = self._layout, self.state.config.rank
        region, row = self._region(rank), layout.row(rank, peer) * 2
        return [
            (region + layout.recv + row * layout.slot_stride, layout.slot_stride),
            (region + layout.recv_gather + row * layout.gather_stride, layout.gather_stride),
            (region + layout.recv_chunk + row * layout.chunk_stride, layout.chunk_stride),
        ]

    @staticmethod
    def _header(
        areas: list[tuple[int, int]], sequence: int, wanted: int | None = None
    ) -> tuple[Flag | None, tuple[int, ...]]:
        """Return the flag and shape in the slot of a sequence, in whichever area it is."""
        for start, stride in areas:
            if not stride:  # a group without chunks
                continue
            header = native.Header.from_address(start + (sequence & 1) * stride)
            flag = Flag.unpack(header.flag)
            right = header.flag == wanted if wanted is not None else flag.sequence == sequence
            if right and header.ndim <= native.MAX_DIMS:
                return flag, tuple(header.dims[: header.ndim])
        return None, ()

    def _fail(self) -> int:
        with self._barrier:  # the report's fields must be read after `valid`
            report = self._report
            if report.kind == ABORTED:
                return native.ABORTED
            if report.kind == DEADLINE:
                return native.PENDING
            config, failure = self.state.config, self.state.failure
            failure.kind, failure.peer = report.kind, report.peer
            failure.lane = config.route[report.peer][report.stripe]
            failure.sequence, failure.mine, failure.theirs = (
                report.sequence,
                report.mine,
                report.theirs,
            )
            told = self._told(report.peer)
            _, shape = self._header(told, report.sequence, report.theirs)
            failure.ndim = len(shape)
            failure.dims[: len(shape)] = shape
            self.state.failed = 1
            return native.FAILED
