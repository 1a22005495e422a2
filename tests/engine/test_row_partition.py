import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetraspark.engine.row_partition import ROW_ALIGNMENT, Partition


def test_4096_rows_of_four_ranks() -> None:
    shares = [Partition(4096, 4, rank) for rank in range(4)]
    assert [(share.begin, share.end) for share in shares] == [
        (0, 1024), (1024, 2048), (2048, 3072), (3072, 4096)
    ]  # fmt: skip


@given(st.integers(0, 20_000), st.integers(1, 16))
def test_shares_are_disjoint_aligned_and_of_one_extent(rows: int, world: int) -> None:
    shares = [Partition(rows, world, 0).of_rank(rank) for rank in range(world)]
    assert [row for share in shares for row in range(share.begin, share.end)] == list(range(rows))
    assert len({share.extent for share in shares}) == 1
    for share in shares:
        assert share.extent % ROW_ALIGNMENT == 0
        assert share.begin % ROW_ALIGNMENT == 0 or share.begin == rows
        assert share.end - share.begin <= share.extent


@given(st.lists(st.integers(0, 700), max_size=9), st.integers(1, 5))
def test_the_shares_of_a_request_add_up_and_zeros_stay(counts: list[int], world: int) -> None:
    rows = sum(counts)
    shares = [Partition(rows, world, rank) for rank in range(world)]
    found = [share.rows_per_request(counts) for share in shares]
    assert [sum(one) for one in found] == [share.end - share.begin for share in shares]
    assert [sum(one) for one in zip(*found, strict=True)] == counts


@pytest.mark.parametrize(("rows", "world", "rank"), [(-1, 1, 0), (1, 0, 0), (1, 2, 2), (1, 2, -1)])
def test_what_is_no_partition_is_refused(rows: int, world: int, rank: int) -> None:
    with pytest.raises(ValueError, match="no partition"):
        Partition(rows, world, rank)
