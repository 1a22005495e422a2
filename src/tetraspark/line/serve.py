"""Serve: execute a plan, watch the ranks until they have proven themselves, or take all down."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from tetraspark.errors import Problem, RunError
from tetraspark.fleet.process import labelled, shared_memory
from tetraspark.fleet.runner import Runner
from tetraspark.line.api import Answer, Api
from tetraspark.line.plan import Plan
from tetraspark.line.preflight import preflight
from tetraspark.line.readiness import Phase, Progress, Start
from tetraspark.line.run import Run, RunStore
from tetraspark.line.stop import stop
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

    Raises RunError when it is served already (unless `replace`), or when a rank ends, lies or
    takes too long; then nothing of it is left running.
    """
    run = _launch(loaded, plan, runner, store, replace)
    api = Api(plan.url, plan.served_name, key)
    site = loaded.site
    start = Start(plan, run, runner, site.deadlines, site.model.canary, api)
    try:
        for progress in start.watch():
            observe(progress)
    except BaseException as error:
        stop(runner, store, site.deadlines.stop_seconds)
        run.record(phase="failed", reason=str(error) or type(error).__name__)
        raise
    assert start.answer is not None
    files = shared_memory([process.pid for process in labelled(run.folder)])
    run.record(phase="ready", shared_memory=[str(file) for file in sorted(files)])
    return Served(run.id, plan.url, plan.served_name, start.answer, start.seconds)


def _launch(loaded: LoadedSite, plan: Plan, runner: Runner, store: RunStore, replace: bool) -> Run:
    with store.lock():
        pids = runner.live(store.root)
        if pids and not replace:
            raise _served_already(plan, store, pids)
        if pids:
            stop(runner, store, loaded.site.deadlines.stop_seconds)
        preflight(plan)
        run = store.create(plan)
        for command in reversed(plan.ranks):
            runner.start(command, run.folder)
    return run


def _served_already(plan: Plan, store: RunStore, pids: tuple[int, ...]) -> RunError:
    latest = store.latest()
    return RunError(
        Problem(
            where=f"line {plan.line}",
            seen=f"run {latest.id if latest else 'unknown'} has {len(pids)} live processes",
            wanted="a line that is not being served",
            fix="`tetraspark status`, then `tetraspark stop` or `tetraspark serve --replace`",
        )
    )
