"""What a thread beside a rank's own sees of a group without an operation."""

from collections.abc import Callable

import pytest

from tests.collectives.fakes import Opened
from tetraspark.collectives.failure import CollectiveError, Failure
from tetraspark.collectives.fake import FakeTransport
from tetraspark.collectives.liveness import Life
from tetraspark.collectives.watchdog import GAP_S, PERIOD_S, Watchdog

Open = Callable[..., Opened]
LIMIT_S = 3.0


def looks(opened: Opened, watchdog: Watchdog, seconds: float) -> list[Failure | None]:
    """Return what a watchdog says at each look of that time."""
    found = []
    end = opened.fabric.time + seconds
    while opened.fabric.time < end:
        found.append(watchdog.look())
        FakeTransport(opened.fabric, 0).pause(PERIOD_S)
    return found


def test_a_stopped_peer_fails_the_group_that_no_operation_waits_for(open_fake: Open) -> None:
    opened = open_fake(3, freeze_limit_s=LIMIT_S)
    watchdog = opened.groups[0].watchdog()
    assert set(looks(opened, watchdog, LIMIT_S)) == {None}
    opened.fabric.faults.life[2] = Life.STOPPED
    assert set(looks(opened, watchdog, LIMIT_S - PERIOD_S)) == {None}
    *_, root = looks(opened, watchdog, 4.0)
    assert root is not None
    assert (root.kind, root.reporter, root.peer) == ("frozen", 0, 2)
    assert opened.groups[1].watchdog().look() == root
    with pytest.raises(CollectiveError) as raised:
        opened.groups[1].check(5.0)
    assert raised.value.root == root


def test_a_peer_that_goes_on_in_time_is_no_failure(open_fake: Open) -> None:
    opened = open_fake(2, freeze_limit_s=LIMIT_S)
    watchdog = opened.groups[0].watchdog()
    for _ in range(4):
        opened.fabric.faults.life[1] = Life.STOPPED
        assert set(looks(opened, watchdog, LIMIT_S - PERIOD_S)) == {None}
        opened.fabric.faults.life[1] = Life.RUNNING
        assert set(looks(opened, watchdog, PERIOD_S)) == {None}


def test_a_rank_that_was_stopped_itself_begins_anew(open_fake: Open) -> None:
    opened = open_fake(2, freeze_limit_s=LIMIT_S)
    watchdog = opened.groups[0].watchdog()
    opened.fabric.faults.life[1] = Life.STOPPED
    assert watchdog.look() is None
    FakeTransport(opened.fabric, 0).pause(LIMIT_S + GAP_S)
    assert set(looks(opened, watchdog, LIMIT_S - PERIOD_S)) == {None}
    *_, root = looks(opened, watchdog, 4.0)
    assert root is not None
    assert root.peer == 1
