"""Stop: end exactly the processes of one line, whoever started them and however that ended."""

from pathlib import Path

from tetraspark.fleet.runner import Runner, Stopped
from tetraspark.line.run import Run, RunStore


def stop(runner: Runner, store: RunStore, grace: float) -> Stopped:
    """End every process of every run of the line and remove the files they left behind."""
    live = [run for run in store.runs() if runner.live(run.folder)]
    latest = store.latest()
    for run in live:
        run.record(phase="stopped")
    leftovers = [file for run in {*live, *([latest] if latest else [])} for file in _files(run)]
    return runner.stop(store.root, grace, leftovers)


def stop_run(runner: Runner, run: Run, grace: float) -> Stopped:
    """End the processes of one run, and no others of its line."""
    return runner.stop(run.folder, grace, _files(run))


def _files(run: Run) -> list[Path]:
    return [Path(name) for name in run.read().get("shared_memory", [])]
