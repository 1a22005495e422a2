"""Which rank failed first, and how it said so. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from tetraspark.fleet.rank import RankState
from tetraspark.line.engine_log import Line


class Evidence(IntEnum):
    """How well something explains a failure; the lowest one present is the root."""

    FROZEN = 0
    OWN_WORDS = 1
    KILLED = 1
    BROKEN = 2
    EXIT_CODE = 3
    PEER_LOST = 4
    CLEAN_EXIT = 5


@dataclass(frozen=True)
class Failure:
    """The root of a failed run: the rank, its words, and when (Unix seconds)."""

    rank: int
    text: str
    time: float


def first_failure(
    lines: Iterable[Line], states: Iterable[RankState], broken: Mapping[int, str]
) -> Failure | None:
    """Return the root; None when nothing has failed.

    Only a rank's first fatal line counts: what follows it is its own collapse. A rank that has
    lost a peer tells the truth, but is never the cause; nor is the engine that then ends itself.
    `broken` names what is missing of a rank that still runs.
    """
    first: dict[int, Line] = {}
    for line in lines:
        if line.fatal:
            first.setdefault(line.rank, line)
    found = [_from_line(line) for line in first.values()]
    for state in states:
        if state.state == "frozen":
            found.append((Evidence.FROZEN, Failure(state.rank, FROZEN_TEXT, 0.0)))
        elif state.rank not in first:
            found += _from_state(state, broken)
    return min(found, key=lambda item: (item[0], item[1].time))[1] if found else None


FROZEN_TEXT = "a process of it is stopped (SIGSTOP)"
ABSENT_TEXT = "its processes are gone and left no exit record"
SHOWN_CHARACTERS = 400


def _from_line(line: Line) -> tuple[Evidence, Failure]:
    evidence = Evidence.PEER_LOST if line.peer_lost else Evidence.OWN_WORDS
    return evidence, Failure(line.rank, line.text[:SHOWN_CHARACTERS], line.time)


def _from_state(state: RankState, broken: Mapping[int, str]) -> list[tuple[Evidence, Failure]]:
    if state.rank in broken:
        return [(Evidence.BROKEN, Failure(state.rank, broken[state.rank], 0.0))]
    if state.state == "absent":
        return [(Evidence.BROKEN, Failure(state.rank, ABSENT_TEXT, 0.0))]
    if state.exit is None:
        return []
    text = f"engine ended: {state.exit}"
    if state.exit.code > 128:
        evidence = Evidence.KILLED
    else:
        evidence = Evidence.EXIT_CODE if state.exit.code else Evidence.CLEAN_EXIT
    return [(evidence, Failure(state.rank, text, state.exit.at))]
