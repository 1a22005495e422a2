"""The region: nothing overlaps, everything is aligned, no rank has a row of its own."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetraspark.collectives import layout as places
from tetraspark.collectives.layout import HEADER, LINE, PAGE, RECORD, Layout

LAYOUTS = st.builds(
    Layout,
    st.integers(2, 8),
    st.integers(1, 4),
    st.integers(1, 1 << 18).map(lambda units: units * 16),
    st.integers(1, 1 << 16).map(lambda units: units * 16),
    st.just(0) | st.integers(1, 1 << 18).map(lambda units: units * 16),
)


def areas(layout: Layout, owner: int) -> list[tuple[int, int]]:
    """Return (start, bytes) of every field in one rank's region."""
    sources = [source for source in range(layout.world) if source != owner]
    found = [(start, LINE) for start in range(places.CONTROL, places.RECORDS, LINE)]
    for source in range(layout.world):
        found += [(layout.record_at(source), RECORD), (layout.status_at(source), LINE)]
    for parity in (0, 1):
        found.append((layout.send + parity * layout.slot_stride, HEADER + layout.reduce_bytes))
        start = layout.send_gather + parity * layout.gather_stride
        found.append((start, HEADER + layout.gather_bytes))
        for source in sources:
            reduce = layout.recv_at(owner, source, parity)
            gather = layout.recv_gather_at(owner, source, parity)
            found += [(reduce, HEADER + layout.reduce_bytes)]
            found += [(gather, HEADER + layout.gather_bytes)]
            if layout.two_shot_bytes:
                for chunk in (layout.send_chunk_at, layout.recv_chunk_at):
                    found += [(chunk(owner, source, parity), HEADER + layout.chunk_bytes)]
            for stripe in range(layout.lanes):
                found.append((layout.flag_at(owner, source, parity, stripe), LINE))
    return found


@given(LAYOUTS, st.integers(0, 7))
def test_fields_are_apart_and_inside(layout: Layout, owner: int) -> None:
    found = sorted(areas(layout, owner % layout.world))
    assert found[0][0] == 0
    for (start, size), (following, _) in pairwise(found):
        assert start + size <= following
    assert found[-1][0] + found[-1][1] <= layout.total
    assert all(start % LINE == 0 for start, _ in found)
    for slots in (layout.send, layout.send_gather, layout.recv, layout.recv_gather):
        assert slots % PAGE == 0
    assert layout.send_chunk % PAGE == layout.recv_chunk % PAGE == 0


@given(LAYOUTS)
def test_no_room_is_wasted(layout: Layout) -> None:
    slots = 2 * layout.world * (layout.reduce_bytes + layout.gather_bytes)
    # Two-shot takes less than four times its largest tensor, whatever the world.
    slots += 4 * layout.two_shot_bytes
    assert layout.total <= slots + 8 * layout.world * 2 * PAGE + 64 * PAGE


@given(LAYOUTS)
def test_a_chunk_is_the_least_that_every_rank_can_hold(layout: Layout) -> None:
    units = layout.two_shot_bytes // 16
    assert layout.chunk_bytes // 16 == -(-units // layout.world)
    assert layout.recv_chunk == layout.total or layout.two_shot_bytes > 0


def test_no_own_row() -> None:
    layout = Layout(4, 1, 4096, 4096)
    assert [layout.row(2, source) for source in (0, 1, 3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="has no row for rank 2"):
        layout.row(2, 2)
    with pytest.raises(ValueError, match="has no row for rank 4"):
        layout.recv_at(0, 4, 0)


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ((1, 1, 16, 16), "world 1"),
        ((9, 1, 16, 16), "world 9"),
        ((2, 5, 16, 16), "5 lanes"),
        ((2, 1, 24, 16), "reduce_bytes 24"),
        ((2, 1, 16, 1 << 30), "gather_bytes 1073741824"),
        ((2, 1, 16, 16, 8), "two_shot_bytes 8"),
        ((2, 1, 16, 16, -16), "two_shot_bytes -16"),
    ],
)
def test_sizes_that_cannot_work_are_refused(sizes: tuple[int, ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Layout(*sizes)


def test_a_stripe_beyond_the_lanes_has_no_flag() -> None:
    with pytest.raises(ValueError, match="stripe 2"):
        Layout(2, 2, 16, 16).flag_at(0, 1, 0, 2)
