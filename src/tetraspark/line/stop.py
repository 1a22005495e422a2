"""Stop: end exactly the processes of one line, whoever started them and however that ended."""

from pathlib import Path

from tetraspark.fleet.runner import Runner, Stopped
from tetraspark.line.run import RunStore


def stop(runner: Runner, store: RunStore, grace: float) -> Stopped:
    """End every process of the line's runs and remove their shared memory."""
    run = store.latest()
    recorded = run.read().get("shared_memory", []) if run else []
    stopped = runner.stop(store.root, grace, [Path(name) for name in recorded])
    if run is not None and (stopped.asked or stopped.killed):
        run.record(phase="stopped", shared_memory=[])
    return stopped
