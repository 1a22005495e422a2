"""Status: what of a line is alive, and which rank is to blame when it is not.

`/health` answering 200 proves little: the API process can outlive the ranks behind it. So every
rank's processes and receipts are looked at, and a canary completion is asked for.
"""

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, Literal

from tetraspark.errors import RunError
from tetraspark.fleet.rank import RankState
from tetraspark.fleet.run_files import read_progress
from tetraspark.fleet.runner import Present, Runner
from tetraspark.line.api import Api, api_of
from tetraspark.line.engine_facts import read_engine
from tetraspark.line.engine_log import Line
from tetraspark.line.failure import detail, first_failure
from tetraspark.line.kv_pool import PoolUsage
from tetraspark.line.log_tail import LogTail
from tetraspark.line.run import RunStore
from tetraspark.site.schema import Canary

Verdict = Literal["ready", "starting", "degraded", "wedged", "down", "unknown"]
NEVER = "never served"
# The engine's health endpoints generate a token and look for it after one second.
HEALTH_SECONDS = 2.5
MODELS_SECONDS = 1.0
SHOWN_CHARACTERS = 200


@dataclass(frozen=True)
class RankStatus:
    """One rank: alive or not, why, its receipts, and the last thing it said.

    `collectives` is what its communicator last wrote, None without one; `usage` is how full its
    KV pool last was, None where its log tells no such thing.
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


@dataclass(frozen=True)
class Status:
    """A line: verdict, reason, ranks, and what the API answered.

    `api` is the HTTP status of the model list, which the API process gives by itself; `health`
    that of /health, behind which the engine generates a token. `effective` is what the engine
    said it runs with when the start ended, None when it did not come so far. `tolerated` are the
    failed checks that the start was told to go on despite.
    """

    line: str
    run: str | None
    phase: str
    verdict: Verdict
    reason: str
    url: str | None
    api: int | None
    health: int | None
    canary_seconds: float | None
    effective: list[dict[str, Any]] | None
    ranks: tuple[RankStatus, ...]
    tolerated: list[dict[str, Any]]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, for `--json`."""
        return asdict(self)


def judge_without_run(there: Present) -> tuple[Verdict, str]:
    """Say what there is of a line that this machine has no run of: others may have started it."""
    if there.running:
        runs = ", ".join(there.runs)
        return "unknown", f"{NEVER} from this machine, and run {runs} lives: ask where it began"
    if there.unseen:
        asked = "; ".join(one.where for one in there.unseen)
        return "unknown", f"{NEVER} from this machine, and not all nodes could be asked: {asked}"
    return "down", NEVER


def read_status(
    line: str, runner: Runner, store: RunStore, key: str | None, canary: Canary, deadline: float
) -> Status:
    """Look at the newest run of a line; the canary has `deadline` seconds."""
    run = store.latest()
    if run is None:
        verdict, reason = judge_without_run(runner.present(store.root))
        return Status(line, None, NEVER, verdict, reason, None, None, None, None, None, (), [])
    plan = run.plan()
    nodes = [command["node"] for command in plan["ranks"]]
    states = runner.inspect(run.folder, nodes)
    tail = LogTail(run.folder, len(nodes))
    lines = tail.read_ends()
    ranks = tuple(
        _rank(
            state,
            nodes[state.rank],
            tail,
            read_progress(run.folder, state.rank),
            read_engine(line.text for line in lines if line.rank == state.rank).usage,
        )
        for state in states
    )
    recorded = run.read()
    verdict, reason = _judge_ranks(ranks, tail.lines, states, recorded, run.is_launching())
    api = api_of(plan, key, runner)
    models = health = seconds = None
    if states[0].state != "unreachable":
        with ThreadPoolExecutor() as pool:
            models_asked = pool.submit(api.http_status, "/v1/models", MODELS_SECONDS)
            health_asked = pool.submit(api.http_status, "/health", HEALTH_SECONDS)
            if verdict == "ready":
                verdict, reason, seconds = _judge_answer(api, canary, deadline)
        models, health = models_asked.result(), health_asked.result()
    return Status(
        line=line,
        run=run.id,
        phase=recorded["phase"],
        verdict=verdict,
        reason=reason,
        url=plan["url"],
        api=models,
        health=health,
        canary_seconds=seconds,
        effective=run.effective(),
        ranks=ranks,
        tolerated=recorded.get("tolerated", []),
    )


def _rank(
    state: RankState,
    node: str,
    tail: LogTail,
    collectives: dict[str, Any] | None,
    usage: PoolUsage | None,
) -> RankStatus:
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
    )


def _judge_ranks(
    ranks: tuple[RankStatus, ...],
    lines: Iterable[Line],
    states: tuple[RankState, ...],
    recorded: dict[str, Any],
    launching: bool,
) -> tuple[Verdict, str]:
    phase = recorded["phase"]
    failed = [rank for rank in ranks if rank.state != "running"]
    # A node that is not reached may well have its rank.
    down = len(failed) == len(ranks) and all(rank.state != "unreachable" for rank in ranks)
    if phase == "stopped" and down:
        return "down", "stopped"
    if phase == "failed" and down:
        return "down", f"the start failed: {recorded.get('reason', 'no reason recorded')}"
    if failed:
        verdict: Verdict = "down" if down else "degraded"
        return verdict, _blame(ranks, failed, lines, states)
    if phase != "ready":
        return _starting(recorded, launching)
    return "ready", ""


def _blame(
    ranks: tuple[RankStatus, ...],
    failed: list[RankStatus],
    lines: Iterable[Line],
    states: tuple[RankState, ...],
) -> str:
    """Name the rank that failed first, and how."""
    broken = {rank.rank: rank.detail for rank in failed if rank.state == "broken"}
    failure = first_failure(lines, states, broken)
    assert failure is not None, "a rank that is not running is a failure"
    return f"rank {failure.rank} ({ranks[failure.rank].node}): {failure.text}"


def _starting(recorded: dict[str, Any], launching: bool) -> tuple[Verdict, str]:
    phase = recorded["phase"]
    seconds = time.time() - recorded.get("since", time.time())
    if launching:
        return "starting", f"phase {phase}, {seconds:.0f} s in it"
    return "degraded", (
        f"the launcher is gone and nothing proved this start (phase {phase}); "
        "`tetraspark serve --replace` starts again, `tetraspark stop` ends it"
    )


def _judge_answer(api: Api, canary: Canary, deadline: float) -> tuple[Verdict, str, float | None]:
    started = time.monotonic()
    try:
        answer = api.chat(canary.prompt, canary.max_tokens, deadline)
    except RunError as error:
        return "wedged", f"canary: {error.problems[0].seen}", None
    seconds = time.monotonic() - started
    if not canary.accepts(answer.text):
        return "wedged", f"canary: {answer.text!r} is without {canary.expect!r}", seconds
    return "ready", "every rank is up, the canary answered", seconds
