"""The supervisor over what kernels publish; the kernels' stores are made by the test."""

import ctypes
from collections.abc import Callable
from typing import Any

import pytest

from tests.collectives.fakes import Opened
from tetraspark.collectives import native
from tetraspark.collectives.cuda_endpoint import CudaEndpoint
from tetraspark.collectives.cuda_state import ABORTED, DEADLINE, Report
from tetraspark.collectives.flags import Dtype, Flag, Op
from tetraspark.collectives.layout import ABORT

Opener = Callable[..., Opened]


class Kernel:
    """Does to a fake rank's region what a kernel does to a real one's."""

    def __init__(self, opened: Opened, rank: int, *, direct: bool) -> None:
        self.opened = opened  # the regions are its memory
        link: Any = opened.groups[rank]._link
        self.layout, self.rank, self.report = link.layout, rank, Report()
        self.base = opened.fabric.address(rank)
        if direct:
            # On shared memory every region is mapped; the fabric maps only the own one.
            link.endpoint.state.config.direct = 1
            link.endpoint.state.config.base[:2] = [opened.fabric.address(r) for r in range(2)]
        self.endpoint = CudaEndpoint(link.endpoint, link.layout, self.report)

    def begin(self, sequence: int, flag: Flag, shape: tuple[int, ...]) -> None:
        self.endpoint.progress.doorbell = sequence
        stride = self.layout.slot_stride
        place = self.base + self.layout.send + (sequence & 1) * stride
        header = native.Header.from_address(place)
        header.flag, header.ndim = flag.pack(), len(shape)
        header.dims[: len(shape)] = shape

    def end(self) -> None:
        self.endpoint.progress.completed = self.endpoint.progress.doorbell

    def arrive(self, sequence: int, word: int) -> None:
        at = self.layout.flag_at(self.rank, 1 - self.rank, sequence & 1, 0)
        ctypes.c_uint64.from_address(self.base + at).value = word


@pytest.fixture
def kernels(open_fake: Opener) -> list[Kernel]:
    opened = open_fake(2)
    return [Kernel(opened, rank, direct=True) for rank in range(2)]


def test_an_operation_is_pending_until_the_kernel_completes_it(kernels: list[Kernel]) -> None:
    kernel = kernels[0]
    assert kernel.endpoint.poll() == native.DONE
    sequence = kernel.endpoint.next_sequence()
    kernel.begin(sequence, Flag(sequence, Op.ALL_REDUCE, Dtype.BF16, 8), (4, 16))
    assert kernel.endpoint.poll() == native.PENDING
    assert kernel.endpoint.sequence == sequence
    assert kernel.endpoint.nbytes() == 128
    assert kernel.endpoint.shape() == (4, 16)
    assert kernel.endpoint.missing(1) == (0,)
    kernel.arrive(sequence, Flag(sequence, Op.ALL_REDUCE, Dtype.BF16, 8).pack())
    assert kernel.endpoint.missing(1) == ()
    kernel.end()
    assert kernel.endpoint.poll() == native.DONE


def test_a_mismatch_names_both_shapes(kernels: list[Kernel]) -> None:
    sequence = kernels[0].endpoint.next_sequence()
    mine = Flag(sequence, Op.ALL_REDUCE, Dtype.BF16, 8)
    theirs = Flag(sequence, Op.ALL_REDUCE, Dtype.FP16, 4)
    kernels[0].begin(sequence, mine, (4, 16))
    kernels[1].begin(sequence, theirs, (32,))
    report = kernels[0].report
    report.kind, report.peer, report.sequence = native.MISMATCH, 1, sequence
    report.mine, report.theirs = mine.pack(), theirs.pack()
    assert kernels[0].endpoint.poll() == native.PENDING
    report.valid = 1
    assert kernels[0].endpoint.poll() == native.FAILED
    words = kernels[0].endpoint.describe_failure()
    assert "rank 0 has all_reduce bf16 [4, 16] of 128 bytes" in words
    assert "rank 1 has all_reduce fp16 [32] of 64 bytes" in words


def test_behind_a_relay_the_other_shape_is_read_where_it_arrived(open_fake: Opener) -> None:
    opened = open_fake(2)
    kernels = [Kernel(opened, rank, direct=False) for rank in range(2)]
    sequence = kernels[0].endpoint.next_sequence()
    mine = Flag(sequence, Op.ALL_REDUCE, Dtype.BF16, 8)
    theirs = Flag(sequence, Op.ALL_REDUCE, Dtype.FP16, 4)
    kernels[0].begin(sequence, mine, (4, 16))
    layout = kernels[0].layout
    header = native.Header.from_address(kernels[0].base + layout.recv_at(0, 1, sequence & 1))
    header.flag, header.ndim, header.dims[0] = theirs.pack(), 1, 32
    report = kernels[0].report
    report.kind, report.peer, report.sequence = native.MISMATCH, 1, sequence
    report.mine, report.theirs, report.valid = mine.pack(), theirs.pack(), 1
    assert kernels[0].endpoint.poll() == native.FAILED
    words = kernels[0].endpoint.describe_failure()
    assert "rank 0 has all_reduce bf16 [4, 16] of 128 bytes" in words
    assert "rank 1 has all_reduce fp16 [32] of 64 bytes" in words


def test_a_device_deadline_names_peer_lane_and_time(kernels: list[Kernel]) -> None:
    report, endpoint = kernels[0].report, kernels[0].endpoint
    report.kind, report.peer, report.waited_ns, report.valid = DEADLINE, 1, 1_500_000_000, 1
    assert endpoint.verdict == DEADLINE
    assert endpoint.late_peer() == (1, 0, 1.5)


def test_no_abort_is_seen_where_none_was_raised(kernels: list[Kernel]) -> None:
    assert not kernels[1].endpoint.aborted


def test_an_aborted_kernel_is_told_apart(kernels: list[Kernel]) -> None:
    report, endpoint = kernels[0].report, kernels[0].endpoint
    report.kind, report.valid = ABORTED, 1
    assert endpoint.poll() == native.ABORTED


def test_the_abort_word_that_kernels_poll_is_raised(kernels: list[Kernel]) -> None:
    kernel = kernels[1]
    kernel.endpoint.abort_own()
    assert kernel.endpoint.aborted
    assert ctypes.c_uint64.from_address(kernel.base + ABORT).value == 2


def test_an_own_record_ends_own_kernels_too(kernels: list[Kernel]) -> None:
    kernel = kernels[0]
    kernel.endpoint.leave_record(0, kernel.layout.record_at(0), b"x", alarm=False)
    assert kernel.endpoint.aborted
    assert kernel.endpoint.read_record(kernel.layout.record_at(0)) == b"x"


def test_the_cpu_cannot_use_the_kernels_slots(kernels: list[Kernel]) -> None:
    with pytest.raises(RuntimeError, match="run on the GPU"):
        kernels[0].endpoint.begin(native.Request())
