"""Route tables and stripes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetraspark.collectives.routes import Routes, stripe_units


@given(st.integers(2, 8), st.integers(1, 4))
def test_both_ends_use_the_same_lanes(world: int, lanes: int) -> None:
    routes = Routes.uniform(world, lanes)
    for rank in range(world):
        for peer in set(range(world)) - {rank}:
            assert routes.between(rank, peer) == routes.between(peer, rank)
            assert sorted(routes.between(rank, peer)) == list(range(lanes))


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ((), "every pair"),
        ((((0, 1), ()),), "at least one"),
        ((((0, 1), (1, 1)),), "distinct"),
        ((((0, 1), (2,)),), "below 2"),
        ((((1, 0), (0,)),), "every pair"),
    ],
)
def test_a_bad_table_is_refused(
    pairs: tuple[tuple[tuple[int, int], tuple[int, ...]], ...], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        Routes(2, 2, pairs)


@given(st.integers(0, 1 << 20), st.integers(1, 4))
def test_stripes_add_up_and_differ_by_one_at_most(units: int, stripes: int) -> None:
    split = stripe_units(units, stripes)
    assert sum(split) == units
    assert sorted(split, reverse=True) == list(split)
    assert max(split) - min(split) <= 1
