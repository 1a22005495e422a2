"""Serve: execute a plan, watch the ranks until they have proven themselves, or take all down."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tetraspark.errors import Problem, RunError
from tetraspark.fleet.runner import Runner
from tetraspark.line.api import Answer, Api
from tetraspark.line.effective import differences, read_effective
from tetraspark.line.plan import Plan
from tetraspark.line.preflight import preflight
from tetraspark.line.readiness import Phase, Progress, Start
from tetraspark.line.run import Run, RunStore
from tetraspark.line.stop import stop, stop_run
from tetraspark.site.load import LoadedSite


@dataclass(frozen=True)
class Served:
    """A line that is ready: its run, its address, what it said, and the seconds of each phase."""

    run: str
    url: str
    model: str
    answer: Answer
    seconds: Mapping[Phase, float]

    def as_dict(self) -> dict[str, object]:
        """Return the fields, for `--json`."""
        return asdict(self)


def serve(
    loaded: LoadedSite,
    plan: Plan,
    key: str | None,
    runner: Runner,
    store: RunStore,
    replace: bool,
    observe: Callable[[Progress], None],
) -> Served:
    """Start the planned line and return when it is ready.

    Raises RunError when it is served already (unless `replace`), when a rank ends, lies or takes
    too long, or when the engine runs with other values than planned; then nothing of this run is
    left, and nothing else was touched.
    """
    grace = loaded.site.deadlines.stop_seconds
    with store.lock():
        _make_room(plan, runner, store, grace if replace else None)
        preflight(plan)
        run = store.create(plan)
    try:
        with run.launching():
            return _start(loaded, plan, run, runner, key, observe)
    except BaseException as error:
        stop_run(runner, run, grace)
        run.record(phase="failed", reason=str(error) or type(error).__name__)
        raise


def _start(
    loaded: LoadedSite,
    plan: Plan,
    run: Run,
    runner: Runner,
    key: str | None,
    observe: Callable[[Progress], None],
) -> Served:
    for command in reversed(plan.ranks):
        runner.start(command, run.folder)
    api = Api(plan.url, plan.served_name, key)
    start = Start(plan, run, runner, loaded.site.deadlines, loaded.site.model.canary, api)
    for progress in start.watch():
        observe(progress)
    assert start.answer is not None
    _require_planned(plan, run, api.server_info(loaded.site.deadlines.canary_seconds))
    run.record(phase="ready")
    return Served(run.id, plan.url, plan.served_name, start.answer, start.seconds)


def _require_planned(plan: Plan, run: Run, info: dict[str, Any]) -> None:
    """Keep what the engine runs with; raises RunError when that is not what was planned."""
    found = read_effective(plan, info)
    run.keep_effective([one.as_dict() for one in found])
    problems = differences(plan, found)
    if problems:
        raise RunError(*problems)


def _make_room(plan: Plan, runner: Runner, store: RunStore, grace: float | None) -> None:
    """Refuse a line that is served already; with `grace`, end it instead."""
    pids = runner.live(store.root)
    if pids and grace is None:
        raise served_already(plan.line, store, len(pids))
    if pids and grace is not None:
        stop(runner, store, grace)


def served_already(line: str, store: RunStore, count: int) -> RunError:
    """Return the refusal to touch a line with live processes."""
    latest = store.latest()
    return RunError(
        Problem(
            where=f"line {line}",
            seen=f"run {latest.id if latest else 'unknown'} has {count} live processes",
            wanted="a line that is not being served",
            fix="`tetraspark status`, then `tetraspark stop` or `tetraspark serve --replace`",
        )
    )
