"""Stop: end exactly the parts of one line, whoever started them and however that ended.

Nothing but the runner decides what is ended. A record that is damaged, or a disk that is full,
is told and keeps no part alive.
"""

import time
from dataclasses import replace
from pathlib import Path

from tetraspark.errors import Problem
from tetraspark.fleet.runner import Runner, Stopped
from tetraspark.fleet.shared_memory import SHARED_MEMORY, foreign
from tetraspark.line.run import STATE, STOPPED, Run, RunStore

START_SECONDS = 300.0
"""How long a start under way may take to notice: it may be waiting for the Docker of a node."""
LOOK_SECONDS = 0.1


def stop(runner: Runner, store: RunStore, grace: float) -> Stopped:
    """End every part of every run of the line and remove the files they left behind."""
    there = set(runner.present(store.root).runs)
    live = [run for run in store.runs() if run.id in there or run.is_launching()]
    latest = store.latest()
    warnings = [one for run in live for one in mark_stopped(run)]
    files, odd = _left_by(list(dict.fromkeys([*live, *([latest] if latest else [])])))
    stopped = runner.stop(store.root, grace, files)
    return replace(stopped, warnings=(*warnings, *odd))


def stop_line(runner: Runner, store: RunStore, grace: float) -> Stopped:
    """Do the same, and wait for a start of the line that is under way: nothing of it comes up.

    For others than the launcher itself, who holds the lock of the line meanwhile.
    """
    launched = store.is_locked()
    stopped = stop(runner, store, grace)
    if not launched:
        return stopped
    deadline = time.monotonic() + START_SECONDS
    while store.is_locked() and time.monotonic() < deadline:
        for run in store.runs()[-1:]:
            if run.is_launching() and not run.is_stopped():
                mark_stopped(run)
        time.sleep(LOOK_SECONDS)
    again = stop(runner, store, grace)
    late = (_still_starting(store),) if store.is_locked() else ()
    return Stopped(
        asked=(*stopped.asked, *again.asked),
        killed=(*stopped.killed, *again.killed),
        removed=(*stopped.removed, *again.removed),
        unverified=(*again.unverified, *late),
        warnings=tuple(dict.fromkeys((*stopped.warnings, *again.warnings))),
        start=True,
    )


def stop_run(runner: Runner, run: Run, grace: float) -> Stopped:
    """End the parts of one run, and no others of its line."""
    files, odd = _left_by([run])
    return replace(runner.stop(run.folder.parent, grace, files, run.id), warnings=odd)


def mark_stopped(run: Run) -> tuple[Problem, ...]:
    """Record that a run is being stopped; return why that cannot be, or what was in the way."""
    damaged = run.damaged()
    try:
        aside = run.record(phase=STOPPED)
    except OSError as error:
        seen = f"not recorded that the run was stopped: {error.strerror or error}"
        wanted, fix = (
            "room for the run's state",
            f"df -h {run.folder}; it is ended all the same",
        )
        return (Problem(str(run.folder / STATE), seen, wanted, fix),)
    if damaged is None or aside is None:
        return ()
    return (replace(damaged, seen=f"{damaged.seen}; kept as {aside.name}", fix=""),)


def _left_by(runs: list[Run]) -> tuple[list[Path], tuple[Problem, ...]]:
    """Return the shared memory that runs recorded, and what is not to be touched of it."""
    files, problems = [], []
    for run in runs:
        if damaged := run.damaged():
            fix = f"ls -l {SHARED_MEMORY} shows what a crash left; {damaged.fix}"
            problems.append(replace(damaged, fix=fix))
        for text in run.read().get("shared_memory", []):
            why = foreign(text, run.made_at)
            if why is None:
                files.append(Path(text))
            else:
                problems.append(_left_alone(run, text, why))
    return files, tuple(problems)


def _left_alone(run: Run, text: str, why: str) -> Problem:
    seen = f"`shared_memory` names {text[:200]!r}: {why}; it is left as it is"
    wanted = f"files of the run in {SHARED_MEMORY}"
    fix = "look at it, and remove it by hand if it is the run's"
    return Problem(str(run.folder / STATE), seen, wanted, fix)


def _still_starting(store: RunStore) -> Problem:
    seen = f"another `tetraspark serve` is at work after {START_SECONDS:.0f} s"
    fix = f"fuser {store.root / 'lock'} shows which; end it, then tetraspark stop again"
    return Problem(str(store.root), seen, "a start that notices it was stopped", fix)
