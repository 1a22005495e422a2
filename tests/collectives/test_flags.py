"""The flag word and the sequence, in Python and in C."""

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetraspark.collectives.flags import (
    MAX_SEQUENCE,
    MAX_UNITS,
    UNIT,
    Dtype,
    Flag,
    Op,
    next_sequence,
    units_of,
)
from tetraspark.collectives.library import proxy

FLAGS = st.builds(
    Flag,
    st.integers(0, MAX_SEQUENCE),
    st.integers(0, 15),
    st.integers(0, 15),
    st.integers(0, MAX_UNITS),
)


@given(FLAGS)
def test_python_and_c_agree_on_every_field(flag: Flag) -> None:
    word = flag.pack()
    assert Flag.unpack(word) == flag
    assert proxy().ts_flag_pack(flag.sequence, flag.op, flag.dtype, flag.units) == word
    fields = (ctypes.c_uint32 * 4)()
    proxy().ts_flag_unpack(word, fields)
    assert tuple(fields) == (flag.sequence, flag.op, flag.dtype, flag.units)


def test_a_flag_is_these_bits() -> None:
    assert Flag(0x01020304, Op.ALL_REDUCE, Dtype.FP32, 4096).pack() == 0x0102030413001000
    assert MAX_UNITS * UNIT >= 16 << 20


@pytest.mark.parametrize(
    "fields", [(1 << 32, 1, 1, 1), (1, 16, 1, 1), (1, 1, -1, 1), (1, 1, 1, 1 << 24)]
)
def test_a_field_that_does_not_fit_is_refused(fields: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match=r"outside 0\.\."):
        Flag(*fields)


@given(st.integers(0, MAX_SEQUENCE) | st.integers(MAX_SEQUENCE - 3, MAX_SEQUENCE))
def test_the_next_sequence_is_never_zero_and_changes_the_slot(sequence: int) -> None:
    following = next_sequence(sequence)
    assert 0 < following <= MAX_SEQUENCE
    assert following % 2 != sequence % 2
    assert proxy().ts_next_sequence(sequence) == following


def test_units_round_up() -> None:
    assert [units_of(n) for n in (0, 1, 16, 17)] == [0, 1, 1, 2]


def test_a_flag_is_described_for_a_person() -> None:
    flag = Flag(5, Op.ALL_REDUCE, Dtype.BF16, 4)
    assert flag.describe((4, 8)) == "all_reduce bf16 [4, 8] of 64 bytes"
    assert Flag(5, 14, 15, 1).describe(None) == "operation 14 15 of 16 bytes"
