"""The ranks of a run as a look finds them, and which is to blame where not all of them run."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from tetraspark.errors import Problem, RunError
from tetraspark.fleet.rank import RankState
from tetraspark.fleet.run_files import read_progress
from tetraspark.fleet.runner import Runner
from tetraspark.line.engine_facts import read_engine
from tetraspark.line.engine_log import Line
from tetraspark.line.failure import detail, first_failure
from tetraspark.line.kv_pool import PoolUsage
from tetraspark.line.log_tail import LogTail
from tetraspark.line.run import READY, Run

Verdict = Literal["ready", "starting", "degraded", "wedged", "down", "unknown"]
SHOWN_CHARACTERS = 200


@dataclass(frozen=True)
class RankStatus:
    """One rank: alive or not, why, its receipts, and the last thing it said.

    `collectives` is what its communicator last wrote, None without one; `usage` is how full its
    KV pool last was, None where its log tells no such thing. `problem` is why some of it is not
    known: a node that was not reached, a record that is damaged.
    """

    rank: int
    node: str
    state: str
    detail: str
    pids: tuple[int, ...]
    receipts: tuple[str, ...]
    last_line: str
    collectives: dict[str, Any] | None
    usage: PoolUsage | None
    problem: Problem | None = None


@dataclass(frozen=True)
class Ranks:
    """What a look at the ranks of a run found: a verdict on them alone, and the one to blame.

    `lines` are those that were new to the tail; `recorded` is the run's own state. `damaged` are
    the records that could not be read.
    """

    verdict: Verdict
    reason: str
    rank: int | None
    ranks: tuple[RankStatus, ...]
    lines: list[Line]
    recorded: dict[str, Any]
    damaged: tuple[Problem, ...] = ()


def read_ranks(run: Run, nodes: list[str], runner: Runner, tail: LogTail) -> Ranks:
    """Look at the ranks of a run, which are on these nodes; `tail` follows their logs."""
    states = runner.inspect(run.folder, nodes)
    lines = tail.read_ends()
    ranks = tuple(
        _rank(
            state,
            nodes[state.rank],
            tail,
            run,
            read_engine(line.text for line in lines if line.rank == state.rank).usage,
        )
        for state in states
    )
    lost = run.damaged()
    recorded = run.read()
    verdict, reason, rank = _judge(ranks, tail.lines, states, recorded, run.is_launching(), lost)
    records = (one.problem for one in ranks if one.state != "unreachable")
    damaged = tuple(one for one in (lost, *records) if one is not None)
    return Ranks(verdict, reason, rank, ranks, lines, recorded, damaged)


def _rank(
    state: RankState, node: str, tail: LogTail, run: Run, usage: PoolUsage | None
) -> RankStatus:
    problem, collectives = state.problem, None
    try:
        collectives = read_progress(run.folder, state.rank)
    except RunError as error:
        problem = problem or error.problems[0]
    last = tail.last(state.rank)
    mine = (line for line in tail.lines if line.rank == state.rank)
    receipts = [line.receipt for line in mine if line.receipt is not None]
    scheduler = next((one["pid"] for one in receipts if one["tetraspark"] == "engine"), None)
    name, told = str(state.state), detail(state)
    # A rank whose processes cannot be seen is not judged by them.
    unseen = scheduler is None or not state.pids or scheduler in state.pids
    if state.state == "running" and not unseen:
        name, told = "broken", f"scheduler process {scheduler} is gone"
    return RankStatus(
        rank=state.rank,
        node=node,
        state=name,
        detail=told,
        pids=state.pids,
        receipts=tuple(dict.fromkeys(one["tetraspark"] for one in receipts)),
        last_line=last.text[:SHOWN_CHARACTERS] if last else "",
        collectives=collectives,
        usage=usage,
        problem=problem,
    )


def _judge(
    ranks: tuple[RankStatus, ...],
    lines: Iterable[Line],
    states: tuple[RankState, ...],
    recorded: dict[str, Any],
    launching: bool,
    lost: Problem | None,
) -> tuple[Verdict, str, int | None]:
    phase = recorded["phase"]
    failed = [rank for rank in ranks if rank.state != "running"]
    # A node that is not reached may well have its rank.
    down = len(failed) == len(ranks) and all(rank.state != "unreachable" for rank in ranks)
    if phase == "stopped" and down:
        return "down", "stopped", None
    if phase == "failed" and down:
        reason = f"the start failed: {recorded.get('reason', 'no reason recorded')}"
        return "down", reason, None
    if failed:
        verdict: Verdict = "down" if down else "degraded"
        return verdict, *_blame(ranks, failed, lines, states)
    if lost is not None:
        return "unknown", f"all ranks run, and how far their start came is not known: {lost}", None
    if phase != READY:
        return *_starting(recorded, launching), None
    return "ready", "", None


def _blame(
    ranks: tuple[RankStatus, ...],
    failed: list[RankStatus],
    lines: Iterable[Line],
    states: tuple[RankState, ...],
) -> tuple[str, int]:
    """Name the rank that failed first, and how."""
    broken = {rank.rank: rank.detail for rank in failed if rank.state == "broken"}
    failure = first_failure(lines, states, broken)
    assert failure is not None, "a rank that is not running is a failure"
    return f"rank {failure.rank} ({ranks[failure.rank].node}): {failure.text}", failure.rank


def _starting(recorded: dict[str, Any], launching: bool) -> tuple[Verdict, str]:
    phase = recorded["phase"]
    seconds = time.time() - recorded.get("since", time.time())
    if launching:
        return "starting", f"phase {phase}, {seconds:.0f} s in it"
    return "degraded", (
        f"the launcher is gone and nothing proved this start (phase {phase}); "
        "`tetraspark serve --replace` starts again, `tetraspark stop` ends it"
    )
