"""Records and the choice of the root."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetraspark.collectives.failure import RECORD_BYTES, Failure, Kind, root_of

FAILURES = st.builds(
    Failure,
    st.sampled_from(list(Kind)),
    st.integers(0, 7),
    st.integers(0, 7),
    st.integers(-1, 3),
    st.integers(0, (1 << 32) - 1),
    st.integers(0, 1 << 28),
    st.text(max_size=60),
)


@given(FAILURES)
def test_a_record_holds_all_of_it(failure: Failure) -> None:
    data = failure.to_bytes()
    assert len(data) <= RECORD_BYTES
    assert Failure.from_bytes(data) == failure or failure.detail not in data.decode()


@given(st.text(min_size=500, max_size=900))
def test_a_long_detail_is_cut_and_nothing_else(detail: str) -> None:
    failure = Failure(Kind.LATE, 1, 2, 0, 9, 64, detail)
    found = Failure.from_bytes(failure.to_bytes())
    assert found.detail.endswith("...")
    assert detail.startswith(found.detail[:-3])
    assert (found.kind, found.reporter, found.peer) == (Kind.LATE, 1, 2)


@given(st.lists(FAILURES, min_size=1, max_size=8), st.randoms())
def test_the_root_does_not_depend_on_the_order(failures: list[Failure], random: object) -> None:
    reordered = sorted(failures, key=lambda one: hash((one.detail, one.peer)))
    first, second = root_of(failures), root_of(reordered)
    assert (first.kind, first.reporter, first.peer) == (second.kind, second.reporter, second.peer)


def test_a_cause_comes_before_its_effects() -> None:
    late = Failure(Kind.LATE, 0, 1, -1, 9, 64, "late")
    lane = Failure(Kind.LANE, 3, 2, 1, 9, 64, "lane")
    assert root_of([late, lane]) == lane
    assert str(lane) == "lane: rank 2 lane 1, seen by rank 3 at sequence 9 (64 bytes): lane"


@pytest.mark.parametrize("data", [b"{}", b"\x00", b'{"kind": "odd"}', b'{"kind": "late"}'])
def test_what_is_no_record_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        Failure.from_bytes(data)
