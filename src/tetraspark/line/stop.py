"""Stop: end exactly the parts of one line, whoever started them and however that ended."""

from pathlib import Path

from tetraspark.fleet.runner import Runner, Stopped
from tetraspark.line.run import Run, RunStore


def stop(runner: Runner, store: RunStore, grace: float) -> Stopped:
    """End every part of every run of the line and remove the files they left behind."""
    there = set(runner.present(store.root).runs)
    live = [run for run in store.runs() if run.id in there]
    latest = store.latest()
    for run in live:
        run.record(phase="stopped")
    leftovers = [file for run in {*live, *([latest] if latest else [])} for file in _files(run)]
    return runner.stop(store.root, grace, leftovers)


def stop_run(runner: Runner, run: Run, grace: float) -> Stopped:
    """End the parts of one run, and no others of its line."""
    return runner.stop(run.folder.parent, grace, _files(run), run.id)


def _files(run: Run) -> list[Path]:
    return [Path(name) for name in run.read().get("shared_memory", [])]
