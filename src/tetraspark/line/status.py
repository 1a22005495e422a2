"""Status: what of a line is alive, and which rank is to blame when it is not.

`/health` answering 200 proves little: the API process can outlive the ranks behind it. So every
rank's processes and receipts are looked at, and a canary completion is asked for.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from tetraspark.errors import Problem, RunError
from tetraspark.fleet.runner import Present, Runner
from tetraspark.line.api import Api, api_of
from tetraspark.line.log_tail import LogTail
from tetraspark.line.ranks import RankStatus, Verdict, read_ranks
from tetraspark.line.run import Run, RunStore
from tetraspark.site.schema import Canary

NEVER = "never served"
# The engine's health endpoints generate a token and look for it after one second.
HEALTH_SECONDS = 2.5
MODELS_SECONDS = 1.0


@dataclass(frozen=True)
class Status:
    """A line: verdict, reason, ranks, and what the API answered.

    `api` is the HTTP status of the model list, which the API process gives by itself; `health`
    that of /health, behind which the engine generates a token. `effective` is what the engine
    said it runs with when the start ended, None when it did not come so far. `tolerated` are the
    failed checks that the start was told to go on despite. `damaged` are the records of the run
    that could not be read: what they would tell is missing.
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
    damaged: tuple[Problem, ...] = ()

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
    try:
        plan = run.plan()
    except RunError as error:
        return _without_plan(line, run, runner.present(store.root), error)
    nodes = [command["node"] for command in plan["ranks"]]
    found = read_ranks(run, nodes, runner, LogTail(run.folder, len(nodes)))
    verdict, reason, recorded = found.verdict, found.reason, found.recorded
    api = api_of(plan, key, runner)
    models = health = seconds = None
    if found.ranks[0].state != "unreachable":
        with ThreadPoolExecutor() as pool:
            models_asked = pool.submit(api.http_status, "/v1/models", MODELS_SECONDS)
            health_asked = pool.submit(api.http_status, "/health", HEALTH_SECONDS)
            if verdict == "ready":
                verdict, reason, seconds = _judge_answer(api, canary, deadline)
        models, health = models_asked.result(), health_asked.result()
    effective, damaged = None, found.damaged
    try:
        effective = run.effective()
    except RunError as error:
        damaged += error.problems
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
        effective=effective,
        ranks=found.ranks,
        tolerated=recorded.get("tolerated", []),
        damaged=damaged,
    )


def _without_plan(line: str, run: Run, there: Present, error: RunError) -> Status:
    """Say what is left to say of a run whose ranks and address nobody knows any more."""
    lost, phase = run.damaged(), run.read()["phase"]
    damaged = (*error.problems, *([lost] if lost else []))
    parts = f"{len(there.running)} live parts of the line"
    reason = f"{error.problems[0].where} cannot be read, so nothing can be asked; {parts}"
    return Status(
        line, run.id, phase, "unknown", reason, None, None, None, None, None, (), [], damaged
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
