"""What broken lanes mean, as a table."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from tetraspark.collectives.failure import Kind
from tetraspark.collectives.lane_verdict import BrokenLane, LaneMap, judge_lanes

PEERS = frozenset({0, 1, 3})
WIRED = LaneMap(2, dict.fromkeys(PEERS, 2), {"r0": PEERS, "r1": PEERS})


def lane(peer: int, number: int, since_s: float = 0.2, own_fault: str = "") -> BrokenLane:
    return BrokenLane(peer, number, f"r{number}", since_s, "retries exceeded", own_fault)


@pytest.mark.parametrize(
    ("broken", "kind", "peer", "number"),
    [
        ([lane(1, 0)], Kind.LANE, 1, 0),
        ([lane(1, 1), lane(3, 1, 0.1)], Kind.LANE, 1, 1),
        ([lane(1, 0), lane(1, 1, 0.1)], Kind.DEAD, 1, 0),
        ([lane(3, 1), lane(3, 0, 0.3)], Kind.DEAD, 3, 0),
        ([lane(0, 1), lane(1, 1), lane(3, 1)], Kind.PORT, 2, 1),
        ([lane(1, 0, 0.0, "its own port is DOWN")], Kind.PORT, 2, 0),
        ([lane(1, 1), lane(1, 0, 0.0, "its own address is gone")], Kind.PORT, 2, 0),
    ],
)
def test_verdicts(broken: list[BrokenLane], kind: Kind, peer: int, number: int) -> None:
    found = judge_lanes(WIRED, broken, frozenset())
    assert found is not None
    assert (found.kind, found.peer, found.lane) == (kind, peer, number)


@pytest.mark.parametrize(
    ("broken", "closed"),
    [([], ()), ([lane(1, 0, 0.1)], ()), ([lane(1, 0), lane(1, 1)], (1,))],
)
def test_no_verdict_yet(broken: list[BrokenLane], closed: Iterable[int]) -> None:
    assert judge_lanes(WIRED, broken, frozenset(closed)) is None


def test_the_last_peer_behind_a_device_is_judged_by_its_lanes() -> None:
    found = judge_lanes(WIRED, [lane(3, 0), lane(3, 1)], frozenset({0, 1}))
    assert found is not None and (found.kind, found.peer) == (Kind.DEAD, 3)


def test_the_only_lane_says_so() -> None:
    single = LaneMap(0, {1: 1}, {"r0": frozenset({1})})
    found = judge_lanes(single, [lane(1, 0)], frozenset())
    assert found is not None and found.kind is Kind.LANE
    assert found.detail == "r0: retries exceeded; it is the only lane to it"


SPARE = LaneMap(2, dict.fromkeys(PEERS, 2), {"r0": PEERS, "r1": PEERS}, dict.fromkeys(PEERS, 1))


@pytest.mark.parametrize(
    "broken",
    [
        [lane(1, 0)],
        [lane(0, 1), lane(1, 1), lane(3, 1)],
        [lane(1, 0, 9.0, "its own port is DOWN")],
        # The last one of them only now: its peer may be gone, or this rank's port.
        [lane(1, 0, 9.0), lane(1, 1, 0.1)],
    ],
)
def test_a_lane_that_can_be_spared_is_no_verdict(broken: list[BrokenLane]) -> None:
    assert judge_lanes(SPARE, broken, frozenset()) is None


@pytest.mark.parametrize(
    ("broken", "kind", "peer", "number"),
    [
        ([lane(1, 0, 9.0), lane(1, 1), lane(3, 0, 9.0)], Kind.DEAD, 1, 0),
        ([lane(1, 0, 9.0), lane(1, 1, 0.0, "its own port is DOWN")], Kind.PORT, 2, 1),
        ([replace(lane(3, 1), stuck=True)], Kind.LANE, 3, 1),
    ],
)
def test_too_few_lanes_left(broken: list[BrokenLane], kind: Kind, peer: int, number: int) -> None:
    found = judge_lanes(SPARE, broken, frozenset())
    assert found is not None
    assert (found.kind, found.peer, found.lane) == (kind, peer, number)
