"""The kernels' own flags, places and rounding, compiled for the host, against the layout's."""

import ctypes
from ctypes import byref
from itertools import pairwise, product
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.collectives.cuda_host import build_protocol
from tetraspark.collectives import native
from tetraspark.collectives.cuda_state import PENDING
from tetraspark.collectives.endpoint import configure
from tetraspark.collectives.flags import MAX_SEQUENCE, MAX_UNITS, Dtype, Flag, Op, next_sequence
from tetraspark.collectives.layout import HEADER, Layout
from tetraspark.collectives.requests import gather_request, reduce_request, two_shot_request
from tetraspark.collectives.routes import Routes, stripe_units

LAYOUT = Layout(4, 3, 8192, 4096, 65536)
WORDS = st.integers(0, MAX_SEQUENCE)


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return build_protocol(Path(tmp_path_factory.mktemp("protocol")))


def config(rank: int, *, pull: bool) -> native.Config:
    bases = [(owner + 1) << 32 for owner in range(4)]
    return configure(
        LAYOUT, Routes.uniform(4, 3), rank, bases,
        direct=True, pull=pull, start_sequence=0, spins=0, yields=0,
    )  # fmt: skip


@given(
    sequence=WORDS,
    op=st.sampled_from(Op),
    dtype=st.sampled_from(Dtype),
    units=st.integers(0, MAX_UNITS),
)
def test_flags_are_packed_as_on_the_host(
    code: ctypes.CDLL, sequence: int, op: Op, dtype: Dtype, units: int
) -> None:
    assert code.pack(sequence, op, dtype, units) == Flag(sequence, op, dtype, units).pack()


@given(sequence=WORDS)
def test_the_next_sequence_is_the_hosts(code: ctypes.CDLL, sequence: int) -> None:
    assert code.next_sequence(sequence) == next_sequence(sequence)


def test_the_sequence_wraps_to_two(code: ctypes.CDLL) -> None:
    assert code.next_sequence(MAX_SEQUENCE) == 2


@given(units=st.integers(0, MAX_UNITS), stripes=st.integers(1, 4))
def test_stripes_are_split_as_on_the_host(code: ctypes.CDLL, units: int, stripes: int) -> None:
    edges = [code.stripe_first(units, stripes, i) for i in range(stripes + 1)]
    sizes = tuple(after - before for before, after in pairwise(edges))
    assert edges[0] == 0
    assert sizes == stripe_units(units, stripes)


def flag(sequence: int, units: int = 4, dtype: int = 1) -> int:
    return Flag(sequence, 1, dtype, units).pack()


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        (flag(7), 0),
        (0, PENDING),
        (flag(5), PENDING),
        (flag(7, units=5), native.MISMATCH),
        (flag(7, dtype=2), native.MISMATCH),
        (flag(9), native.DIVERGED),
    ],
)
def test_a_flag_is_judged(code: ctypes.CDLL, seen: int, verdict: int) -> None:
    assert code.judge(seen, flag(7), 7) == verdict


def test_a_flag_before_the_wrap_is_old_after_it(code: ctypes.CDLL) -> None:
    assert code.judge(flag(MAX_SEQUENCE), flag(3), 3) == PENDING
    assert code.judge(flag(2), flag(MAX_SEQUENCE), MAX_SEQUENCE) == native.DIVERGED


@pytest.mark.parametrize("sequence", [6, 7])
@pytest.mark.parametrize("op", [Op.ALL_REDUCE, Op.PROBE, Op.GATHER_LAST, Op.PROBE_GATHER])
def test_slots_lie_where_the_layout_says(code: ctypes.CDLL, op: Op, sequence: int) -> None:
    gather, parity = op in (Op.GATHER_LAST, Op.PROBE_GATHER), sequence & 1
    start, stride = (
        (LAYOUT.send_gather, LAYOUT.gather_stride) if gather else (LAYOUT.send, LAYOUT.slot_stride)
    )
    recv_at = LAYOUT.recv_gather_at if gather else LAYOUT.recv_at
    for rank, peer in product(range(4), range(4)):
        if rank == peer:
            continue
        pull, push = config(rank, pull=True), config(rank, pull=False)
        send = start + parity * stride
        assert code.send_slot(byref(pull), rank, peer, op, sequence) == send
        assert code.recv_slot(byref(pull), rank, peer, op, sequence) == recv_at(rank, peer, parity)
        assert code.arrived(byref(pull), peer, op, sequence) == pull.base[peer] + send
        assert code.target(byref(pull), peer, op, sequence) == pull.base[rank] + send
        there, here = recv_at(peer, rank, parity), recv_at(rank, peer, parity)
        assert code.target(byref(push), peer, op, sequence) == push.base[peer] + there
        assert code.arrived(byref(push), peer, op, sequence) == push.base[rank] + here


@pytest.mark.parametrize("sequence", [6, 7])
@pytest.mark.parametrize("op", [Op.TWO_SHOT_REDUCE, Op.REDUCE_SCATTER_LAST, Op.PROBE_CHUNK])
def test_chunks_lie_where_the_layout_says(code: ctypes.CDLL, op: Op, sequence: int) -> None:
    parity = sequence & 1
    for rank, peer in product(range(4), range(4)):
        if rank == peer:
            continue
        pull, push = config(rank, pull=True), config(rank, pull=False)
        mine, theirs = (
            LAYOUT.send_chunk_at(*pair, parity) for pair in ((rank, peer), (peer, rank))
        )
        assert code.target(byref(pull), peer, op, sequence) == pull.base[rank] + mine
        assert code.arrived(byref(pull), peer, op, sequence) == pull.base[peer] + theirs
        there, here = (LAYOUT.recv_chunk_at(*pair, parity) for pair in ((peer, rank), (rank, peer)))
        assert code.target(byref(push), peer, op, sequence) == push.base[peer] + there
        assert code.arrived(byref(push), peer, op, sequence) == push.base[rank] + here


@pytest.mark.parametrize("sequence", [6, 7])
def test_reduced_chunks_go_to_all_from_one_slot(code: ctypes.CDLL, sequence: int) -> None:
    told = config(2, pull=True)
    slot = LAYOUT.send_chunk_at(2, 0, sequence & 1)
    for peer in (0, 1, 3):
        assert code.target(byref(told), peer, Op.TWO_SHOT_GATHER, sequence) == told.base[2] + slot
        first = LAYOUT.send_chunk_at(peer, 1 if peer == 0 else 0, sequence & 1)
        seen = code.arrived(byref(told), peer, Op.TWO_SHOT_GATHER, sequence)
        assert seen == told.base[peer] + first


@pytest.mark.parametrize("nbytes", [16, 48, 4096, 61440, 65520])
def test_stripes_of_chunks_cover_the_tensor_once(code: ctypes.CDLL, nbytes: int) -> None:
    request = two_shot_request(4, Dtype.BF16, (nbytes // 2,), nbytes)
    seen: list[int] = []
    for owner, stripe in product(range(4), range(3)):
        edges = (ctypes.c_uint32 * 2)()
        code.chunk(byref(request), owner, 3, stripe, edges)
        seen += range(edges[0], edges[1])
    assert seen == list(range(nbytes // 16))


def test_flags_lie_where_the_layout_says(code: ctypes.CDLL) -> None:
    told = config(0, pull=True)
    for owner, source, parity, stripe in product(range(4), range(4), (0, 1), range(3)):
        if owner != source:
            seen = code.flag_place(byref(told), owner, source, 8 + parity, stripe)
            assert seen == LAYOUT.flag_at(owner, source, parity, stripe)


def test_shapes_of_one_size_have_different_digests(code: ctypes.CDLL) -> None:
    shapes = [(8, 16), (16, 8), (128,), (1, 128), (2, 4, 16)]
    requests = [reduce_request(4, Dtype.BF16, shape, 256) for shape in shapes]
    digests = {code.digest(byref(request), 1) for request in requests}
    assert len(digests) == len(shapes)


def test_a_digest_is_of_the_sources_own_shape(code: ctypes.CDLL) -> None:
    mine = gather_request(Dtype.BF16, 2, (4, 8), (8, 24), last=True)
    theirs = gather_request(Dtype.BF16, 2, (4, 24), (8, 24), last=True)
    assert code.digest(byref(mine), 1) == code.digest(byref(theirs), 1)
    assert code.digest(byref(mine), 0) != code.digest(byref(mine), 1)


@pytest.mark.parametrize(
    ("shape", "sizes", "last"),
    [((3, 5), (5, 2, 7), True), ((2, 3, 4), (4, 4, 1), True), ((2, 3), (2, 2, 2), False)],
)
def test_gathered_bytes_land_where_a_concatenation_puts_them(
    code: ctypes.CDLL, shape: tuple[int, ...], sizes: tuple[int, ...], last: bool
) -> None:
    request = gather_request(Dtype.INT16, 2, shape, sizes, last=last)
    shards = []
    for size in sizes:
        own = (*shape[:-1], size) if last else (size, *shape[1:])
        shards.append(torch.randint(0, 9999, own, dtype=torch.int16))
    whole = torch.cat(shards, -1 if last else 0)
    out = bytearray(b"\xff" * whole.nbytes)
    for rank, shard in enumerate(shards):
        for byte, value in enumerate(shard.numpy().tobytes()):
            out[code.gathered(byref(request), rank, byte)] = value
    assert bytes(out) == whole.numpy().tobytes()


@given(value=st.floats(width=32, allow_nan=False))
def test_bf16_is_rounded_as_torch_does(code: ctypes.CDLL, value: float) -> None:
    single = torch.tensor([value], dtype=torch.float32)
    bits = int(single.view(torch.int32)) & 0xFFFFFFFF
    wanted = int(single.to(torch.bfloat16).view(torch.int16)) & 0xFFFF
    assert code.bf16_bits(bits) == wanted


def test_every_nan_becomes_one(code: ctypes.CDLL) -> None:
    assert {code.bf16_bits(bits) for bits in (0x7F800001, 0xFFC00000, 0x7FFFFFFF)} == {0x7FC0}


def test_a_header_fills_a_line() -> None:
    assert ctypes.sizeof(native.Header) == HEADER
