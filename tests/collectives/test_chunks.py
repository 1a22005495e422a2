"""Which rows each rank reduces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetraspark.collectives.chunks import chunk_rows, places


@given(st.integers(1, 4096), st.integers(1, 4096), st.integers(2, 8))
def test_chunks_are_whole_units_and_as_even_as_they_can_be(
    steps: int, row_bytes: int, world: int
) -> None:
    step = next(rows for rows in (1, 2, 4, 8, 16) if rows * row_bytes % 16 == 0)
    rows = chunk_rows(steps * step, row_bytes, world)
    assert sum(rows) == steps * step
    assert all(one * row_bytes % 16 == 0 for one in rows)
    assert max(rows) - min(rows) in (0, step)
    assert list(rows) == sorted(rows, reverse=True)


@pytest.mark.parametrize(
    ("rows", "row_bytes", "chunks"),
    [(96, 1, (32, 32, 32)), (80, 1, (32, 32, 16)), (4, 64, (2, 1, 1)), (8, 6, (8, 0, 0))],
)
def test_chunks_of_a_size(rows: int, row_bytes: int, chunks: tuple[int, ...]) -> None:
    assert chunk_rows(rows, row_bytes, 3) == chunks


def test_parts_lie_one_after_another() -> None:
    assert places((32, 16, 0, 8)) == [0, 32, 48, 48]
