"""Serve: execute a plan, watch the ranks until they have proven themselves, or take all down."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tetraspark.errors import Problem, RunError, TetrasparkError
from tetraspark.fleet.runner import Present, Runner
from tetraspark.line.api import Answer, api_of
from tetraspark.line.effective import differences, read_effective
from tetraspark.line.engine_causes import explained_failure
from tetraspark.line.fleet_start import FleetStart
from tetraspark.line.log_tail import log_end
from tetraspark.line.plan import Plan
from tetraspark.line.preflight import preflight
from tetraspark.line.progress import Phase, Progress, Watcher
from tetraspark.line.readiness import Start, stopped_meanwhile
from tetraspark.line.run import READY, Run, RunStore
from tetraspark.line.stop import stop, stop_run
from tetraspark.site.load import LoadedSite


@dataclass(frozen=True)
class Served:
    """A line that is ready: its run, its address, what it said, and the seconds of each phase.

    `page` is where its watch shows it; None without one, and then `page_problem` may say why.
    """

    run: str
    url: str
    model: str
    answer: Answer
    seconds: Mapping[Phase, float]
    page: str | None = None
    page_problem: Problem | None = None

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
    *,
    fleet: FleetStart | None = None,
    watchers: Sequence[Watcher] = (),
) -> Served:
    """Start the planned line and return when it is ready.

    `fleet` is what there is to do on a fleet's nodes; a local line has none. Raises RunError when
    the line is served already (unless `replace`), when a node is not fit for it, when a rank ends,
    lies or takes too long, or when the engine runs with other values than planned; then nothing of
    this run is left, and nothing else was touched. What could not be verified is among the
    problems.
    """
    grace = loaded.site.deadlines.stop_seconds
    if fleet is not None:
        watchers = (*fleet.watchers, *watchers)
    with contextlib.ExitStack() as launching:
        with store.lock():
            there = _refuse_running(plan, runner, store, replace)
            looked = fleet.look(replacing=bool(there.running)) if fleet else {}
            _make_room(there, runner, store, grace)
            if plan.kind == "local":
                preflight(plan)
            run = store.create(plan)
            run.record(**looked)
            launching.enter_context(run.launching())
            with _taken_down_on_error(loaded, plan, run, runner, fleet):
                if fleet is not None:
                    run.record(**fleet.free_memory())
                # The workers first: the head gives up on peers that it cannot find.
                for ranks in (plan.ranks[1:], plan.ranks[:1]):
                    if run.is_stopped():
                        raise stopped_meanwhile(run)
                    runner.start(ranks, run.folder, key)
        with _taken_down_on_error(loaded, plan, run, runner, fleet):
            served = _watch(loaded, plan, run, runner, key, observe, watchers)
    if fleet is not None:
        fleet.keep_states()
    return served


@contextlib.contextmanager
def _taken_down_on_error(
    loaded: LoadedSite, plan: Plan, run: Run, runner: Runner, fleet: FleetStart | None
) -> Iterator[None]:
    """End the run when anything goes wrong with it, say why, and say what could not be ended."""
    try:
        yield
    except BaseException as error:
        stopped = stop_run(runner, run, loaded.site.deadlines.stop_seconds)
        # After the stop: all that the ranks have said is there.
        told = _explained(loaded, plan, run, fleet, error) if isinstance(error, RunError) else error
        doubts = (*stopped.unverified, *stopped.warnings)
        try:
            run.record(phase="failed", reason=str(told) or type(told).__name__)
        except OSError as full:
            doubts += (_unrecorded(run, full),)
        if told is error and not doubts:
            raise
        raise RunError(*_problems(run, told), *doubts) from error


def _unrecorded(run: Run, error: OSError) -> Problem:
    seen = f"not recorded why the start failed: {error.strerror or error}"
    return Problem(str(run.folder), seen, "room for the run's state", f"df -h {run.folder}")


def _explained(
    loaded: LoadedSite, plan: Plan, run: Run, fleet: FleetStart | None, error: RunError
) -> RunError:
    """Return the failure with the causes that ranks and GPU drivers told."""
    fabric, nodes = loaded.site.fabric, [command.node for command in plan.ranks]
    told = explained_failure(
        error, nodes, lambda rank: log_end(run.folder, rank), fabric.topology if fabric else None
    )
    return RunError(*told.problems, *(fleet.complaints() if fleet else ()))


def _problems(run: Run, error: BaseException) -> tuple[Problem, ...]:
    if isinstance(error, TetrasparkError):
        return error.problems
    seen = f"the start was cut off: {type(error).__name__} {error}".rstrip()
    return (Problem(f"run {run.id}", seen, "a start that is left alone", "tetraspark stop"),)


def _watch(
    loaded: LoadedSite,
    plan: Plan,
    run: Run,
    runner: Runner,
    key: str | None,
    observe: Callable[[Progress], None],
    watchers: Sequence[Watcher],
) -> Served:
    site = loaded.site
    api = api_of(plan.as_dict(), key, runner)
    start = Start(plan, run, runner, site.deadlines, site.model.canary, api, watchers)
    for progress in start.watch():
        observe(progress)
    assert start.answer is not None
    _require_planned(plan, run, api.server_info(site.deadlines.canary_seconds))
    if not run.advance(READY):
        raise stopped_meanwhile(run)
    return Served(run.id, plan.url, plan.served_name, start.answer, start.seconds)


def _require_planned(plan: Plan, run: Run, info: dict[str, Any]) -> None:
    """Keep what the engine runs with; raises RunError when that is not what was planned."""
    found = read_effective(plan, info)
    run.keep_effective([one.as_dict() for one in found])
    problems = differences(plan, found)
    if problems:
        raise RunError(*problems)


def _refuse_running(plan: Plan, runner: Runner, store: RunStore, replace: bool) -> Present:
    """Refuse a line that is served already, unless it is to be replaced, or that hides."""
    there = runner.present(store.root)
    if there.unseen:
        raise RunError(*there.unseen)
    if there.running and not replace:
        raise served_already(plan.line, there, runner.unit)
    return there


def _make_room(there: Present, runner: Runner, store: RunStore, grace: float) -> None:
    """End and remove what there is of the line, whoever started it; nothing may be left."""
    if there.parts:
        stopped = stop(runner, store, grace)
        if stopped.unverified:
            raise RunError(*stopped.unverified)


def served_already(line: str, there: Present, unit: str) -> RunError:
    """Return the refusal to touch a line with live parts."""
    return RunError(
        Problem(
            where=f"line {line}",
            seen=f"run {', '.join(there.runs)} has {len(there.running)} live {unit}",
            wanted="a line that is not being served",
            fix="`tetraspark status`, then `tetraspark stop` or `tetraspark serve --replace`",
        )
    )
