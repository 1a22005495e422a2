"""The C reduction against numpy, bit by bit."""

import ctypes

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tetraspark.collectives.flags import Dtype
from tetraspark.collectives.library import proxy
from tetraspark.collectives.native import DONE, FAILED


def widen(bits: np.ndarray, dtype: Dtype) -> np.ndarray:
    """Return the fp32 values of stored bits."""
    if dtype is Dtype.BF16:
        return (bits.astype(np.uint32) << 16).view(np.float32)
    return bits.view(np.float16 if dtype is Dtype.FP16 else np.float32).astype(np.float32)


def narrow(values: np.ndarray, dtype: Dtype) -> np.ndarray:
    """Round fp32 to the stored bits, to nearest even."""
    if dtype is Dtype.FP16:
        return values.astype(np.float16).view(np.uint16)
    bits = values.view(np.uint32)
    if dtype is Dtype.FP32:
        return bits
    wide = bits.astype(np.uint64)
    return ((wide + 0x7FFF + ((wide >> 16) & 1)) >> 16).astype(np.uint16)


def reduce_in_c(shards: list[np.ndarray], dtype: Dtype) -> np.ndarray:
    out = np.empty_like(shards[0])
    sources = (ctypes.c_void_p * len(shards))(*[shard.ctypes.data for shard in shards])
    state = proxy().ts_reduce(out.ctypes.data, sources, len(shards), dtype, out.nbytes)
    assert state == DONE
    return out


def compare(shards: list[np.ndarray], dtype: Dtype) -> None:
    """Compare all bits; where the sum is NaN, any NaN is right."""
    with np.errstate(all="ignore"):
        total = widen(shards[0], dtype)
        for shard in shards[1:]:
            total = total + widen(shard, dtype)
        wanted = narrow(total, dtype)
    seen, nan = reduce_in_c(shards, dtype), np.isnan(total)
    assert np.array_equal(seen[~nan], wanted[~nan])
    assert np.isnan(widen(seen[nan], dtype)).all()


@pytest.mark.parametrize("dtype", [Dtype.BF16, Dtype.FP16])
@pytest.mark.parametrize("world", range(2, 9))
def test_every_16_bit_value_in_every_place(dtype: Dtype, world: int) -> None:
    every = np.arange(1 << 16, dtype=np.uint16)
    random = np.random.default_rng(world)
    shards = [random.permutation(every) for _ in range(world)]
    shards[world - 1] = every
    compare(shards, dtype)
    zero = np.zeros_like(every)
    compare([every] + [zero] * (world - 1), dtype)


@settings(max_examples=80)
@given(
    world=st.integers(2, 8),
    units=st.integers(1, 300),
    seed=st.integers(0, 1 << 30),
    dtype=st.sampled_from([Dtype.BF16, Dtype.FP16, Dtype.FP32]),
    finite=st.booleans(),
)
def test_any_bits_of_any_size(
    world: int, units: int, seed: int, dtype: Dtype, finite: bool
) -> None:
    random = np.random.default_rng(seed)
    kind = np.uint32 if dtype is Dtype.FP32 else np.uint16
    size = units * 16 // np.dtype(kind).itemsize
    if finite:
        values = [random.normal(0, 100, size).astype(np.float32) for _ in range(world)]
        shards = [narrow(value, dtype) for value in values]
    else:
        shards = [random.integers(0, np.iinfo(kind).max + 1, size, kind) for _ in range(world)]
    compare([np.ascontiguousarray(shard) for shard in shards], dtype)


def test_rounding_happens_once_at_the_end() -> None:
    # 256 + 1 + 1 is 258 in fp32; rounding to bf16 after each step would stay at 256.
    values = [torch.full((8,), value, dtype=torch.bfloat16) for value in (256.0, 1.0, 1.0)]
    shards = [value.view(torch.uint16).numpy() for value in values]
    assert widen(reduce_in_c(shards, Dtype.BF16), Dtype.BF16).tolist() == [258.0] * 8


def test_negative_zero_stays() -> None:
    shards = [np.full(8, 0x8000, np.uint16)] * 3
    assert reduce_in_c(shards, Dtype.BF16).tolist() == [0x8000] * 8


def test_a_flush_to_zero_mode_changes_no_fp16_bit() -> None:
    every = np.arange(1 << 16, dtype=np.uint16)
    plain = reduce_in_c([every, every[::-1].copy()], Dtype.FP16)
    if not torch.set_flush_denormal(True):
        pytest.fail("this CPU cannot flush subnormals, the test needs one that can")
    try:
        flushed = reduce_in_c([every, every[::-1].copy()], Dtype.FP16)
    finally:
        torch.set_flush_denormal(False)
    assert np.array_equal(plain, flushed)


@pytest.mark.parametrize(("world", "dtype"), [(1, Dtype.BF16), (9, Dtype.BF16), (2, Dtype.INT8)])
def test_what_cannot_be_summed_is_refused(world: int, dtype: Dtype) -> None:
    bits = np.zeros(8, np.uint16)
    sources = (ctypes.c_void_p * world)(*[bits.ctypes.data] * world)
    assert proxy().ts_reduce(bits.ctypes.data, sources, world, dtype, 16) == FAILED
