"""Stacks of all threads, written beside a rank's log when the process gets SIGUSR1.

The handler is C code of the standard library, so it answers also where Python itself waits for
something that does not come.
"""

import faulthandler
import os
import signal
from pathlib import Path

from tetraspark.engine.label import RANK, RUN_DIR

SIGNAL = signal.SIGUSR1


def stacks_path(run_dir: Path, rank: int) -> Path:
    """Return the file that the processes of a rank write their stacks to."""
    return run_dir / f"rank{rank}.stacks"


def write_stacks_on_signal() -> None:
    """Let this process append its stacks to the rank's file; without a run's folder, do nothing."""
    if RUN_DIR in os.environ and os.environ.get(RANK, "").isdigit():
        path = stacks_path(Path(os.environ[RUN_DIR]), int(os.environ[RANK]))
        file = path.open("ab")  # Open for as long as the process lives: the handler writes to it.
        faulthandler.register(SIGNAL, file=file, all_threads=True)
