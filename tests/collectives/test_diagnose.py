"""The table that tells late from dead and one side from the other."""

from dataclasses import replace

import pytest

from tetraspark.collectives.diagnose import View, behind, diagnose
from tetraspark.collectives.failure import Kind
from tetraspark.collectives.liveness import Life
from tetraspark.collectives.transport import Phase, Seen

READY = Seen(9, 9, 8, Phase.SERVING, (9, 9))
WAIT = View(2, 9, (1,), 9, 9, {0: 9, 1: 9}, Life.RUNNING, READY)


@pytest.mark.parametrize(
    ("view", "kind", "lane", "words"),
    [
        (replace(WAIT, life=Life.DEAD), Kind.DEAD, -1, "gone"),
        (replace(WAIT, life=Life.STOPPED), Kind.FROZEN, -1, "is stopped"),
        (replace(WAIT, doorbell=8, posted=8), Kind.LATE, -1, "our own operation"),
        (replace(WAIT, posted=8), Kind.LATE, -1, "our own proxy is starved"),
        (replace(WAIT, acked={0: 8, 1: 9}), Kind.LANE, 0, "our write to it"),
        (replace(WAIT, missing=()), Kind.LATE, -1, "every flag is here"),
        (replace(WAIT, theirs=None), Kind.LATE, -1, "has not reported"),
        (replace(WAIT, life=Life.UNKNOWN, theirs=None), Kind.LATE, -1, "has not reported"),
        (replace(WAIT, theirs=replace(READY, doorbell=8)), Kind.LATE, -1, "it has begun 8"),
        (
            replace(WAIT, theirs=replace(READY, doorbell=8, phase=Phase.CLOSING)),
            Kind.CLOSED, -1, "closed the group",
        ),
        (replace(WAIT, theirs=replace(READY, posted=8)), Kind.LATE, -1, "its proxy is starved"),
        (replace(WAIT, theirs=replace(READY, acked=(9, 8))), Kind.LANE, 1, "its write to us"),
        (WAIT, Kind.LOST, 1, "the flag is not here"),
    ],
)  # fmt: skip
def test_the_table(view: View, kind: Kind, lane: int, words: str) -> None:
    verdict = diagnose(view)
    assert (verdict.kind, verdict.lane) == (kind, lane)
    assert words in verdict.text


def test_behind_crosses_the_wrap() -> None:
    assert behind((1 << 32) - 1, 2)
    assert not behind(2, (1 << 32) - 1)
    assert behind(7, 8)
    assert not behind(8, 8)
