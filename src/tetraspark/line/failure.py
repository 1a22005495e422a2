"""Which rank failed first, and how it said so. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from tetraspark.fleet.rank import RankState
from tetraspark.line.engine_log import Line

FROZEN_TEXT = "a process of it is stopped (SIGSTOP), or its container is paused"
ABSENT_TEXT = "it is gone and left no exit record"
MEMORY_TEXT = "the kernel ended it: no memory left (Docker: OOMKilled)"
SHOWN_CHARACTERS = 400
LAST_WORDS_SECONDS = 60.0


class Evidence(IntEnum):
    """How well something explains a failure; the lowest one present is the root."""

    FROZEN = 0
    CAUSE = 1
    NAMED = 2
    BROKEN = 3
    EXIT_CODE = 4
    PEER_LOST = 5
    CLEAN_EXIT = 6


@dataclass(frozen=True)
class Failure:
    """The root of a failed run: the rank, its words, and when (Unix seconds)."""

    rank: int
    text: str
    time: float


def detail(state: RankState) -> str:
    """Return what there is to say of a rank's state; nothing where the state says it all."""
    if state.problem is not None:
        return state.problem.seen
    if state.out_of_memory:
        return MEMORY_TEXT
    if state.restarts:
        return f"its container was restarted {state.restarts} times: what runs has lost its peers"
    if state.state == "frozen":
        return FROZEN_TEXT
    return str(state.exit) if state.exit else ""


def first_failure(
    lines: Iterable[Line], states: Iterable[RankState], broken: Mapping[int, str]
) -> Failure | None:
    """Return the root; None when nothing has failed.

    Only ranks that are not whole are asked, and of their words only those of the last minute: an
    exception that was logged and survived explains nothing. Of these only the first fatal line
    counts: what follows is the rank's own collapse. A rank that has lost a peer tells the truth,
    but is never the cause; nor is the engine that then ends itself. The root that its collective
    names is one, unless a rank's own words say more; a signal that ended a rank which is not
    the root only took part in the collapse. `broken` names what is
    missing of a rank that still runs. A node that is not reached says nothing about its rank, so
    a rank's own words come before it.
    """
    lines = list(lines)
    failed = [state for state in states if state.state != "running" or state.rank in broken]
    said = {state.rank: _last_words(lines, state) for state in failed}
    named = _named(said.values())
    found = [] if named is None else [(Evidence.NAMED, named)]
    for state in failed:
        words = next((line for line in said[state.rank] if line.fatal), None)
        if state.state == "frozen":
            found.append((Evidence.FROZEN, Failure(state.rank, FROZEN_TEXT, 0.0)))
        elif state.state == "unreachable" or state.out_of_memory:
            found.append(_from_state(state, broken))
        elif words is not None:
            found.append(_from_line(words))
        elif named is None or named.rank == state.rank:
            found.append(_from_state(state, broken))
    return min(found, key=lambda item: (item[0], item[1].time))[1] if found else None


def _last_words(lines: list[Line], state: RankState) -> list[Line]:
    """Return the lines of a rank's last minute.

    A rank that ended before it printed any time has said all it did in that minute.
    """
    own = [line for line in lines if line.rank == state.rank]
    if not own or not own[-1].time:
        return own
    since = max(own[-1].time, state.exit.at if state.exit else 0.0) - LAST_WORDS_SECONDS
    return [line for line in own if line.time >= since]


def _named(said: Iterable[list[Line]]) -> Failure | None:
    """Return the root that a collective named first; all that name one name the same."""
    roots = [
        Failure(line.root[0], line.root[1][:SHOWN_CHARACTERS], line.time)
        for lines in said
        for line in lines
        if line.root is not None
    ]
    return min(roots, key=lambda root: root.time, default=None)


def _from_line(line: Line) -> tuple[Evidence, Failure]:
    evidence = Evidence.PEER_LOST if line.peer_lost else Evidence.CAUSE
    return evidence, Failure(line.rank, line.text[:SHOWN_CHARACTERS], line.time)


def _from_state(state: RankState, broken: Mapping[int, str]) -> tuple[Evidence, Failure]:
    if state.rank in broken:
        return Evidence.BROKEN, Failure(state.rank, broken[state.rank], 0.0)
    at = state.exit.at if state.exit else 0.0
    if state.out_of_memory:
        return Evidence.CAUSE, Failure(state.rank, detail(state), at)
    if state.problem is not None or state.restarts:
        return Evidence.BROKEN, Failure(state.rank, detail(state), at)
    if state.exit is None:
        return Evidence.BROKEN, Failure(state.rank, ABSENT_TEXT, at)
    if state.exit.code > 128:
        evidence = Evidence.CAUSE
    else:
        evidence = Evidence.EXIT_CODE if state.exit.code else Evidence.CLEAN_EXIT
    return evidence, Failure(state.rank, f"engine ended: {state.exit}", state.exit.at)
