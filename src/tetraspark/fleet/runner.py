"""The runner protocol: the only thing that touches a machine."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tetraspark.fleet.rank import RankCommand, RankState


@dataclass(frozen=True)
class Inventory:
    """What a plan needs to know of this machine.

    `python` runs the engine of version `engine`; `cpus` are the cores it may use; `standins` are
    the modules that must be stood in for; `ports` are free TCP ports, one more than ranks.
    """

    python: str
    engine: str | None
    cpus: tuple[int, ...]
    standins: tuple[str, ...]
    ports: tuple[int, ...]


@dataclass(frozen=True)
class Stopped:
    """What a stop did: processes asked, processes that had to be killed, files removed."""

    asked: tuple[int, ...]
    killed: tuple[int, ...]
    removed: tuple[str, ...]


class Runner(Protocol):
    """Starts, inspects and stops the ranks of runs that live under a folder of their own."""

    def inventory(self, ranks: int) -> Inventory:
        """Look at the machine."""
        ...

    def start(self, command: RankCommand, run_dir: Path) -> None:
        """Start one rank; returns at once."""
        ...

    def inspect(self, run_dir: Path, ranks: int) -> tuple[RankState, ...]:
        """Return the state of every rank of a run, in rank order."""
        ...

    def read_log(self, run_dir: Path, rank: int, offset: int, size: int = -1) -> bytes:
        """Return what a rank has printed from a byte offset on, at most `size` bytes."""
        ...

    def log_size(self, run_dir: Path, rank: int) -> int:
        """Return how many bytes a rank has printed."""
        ...

    def shared_memory(self, run_dir: Path) -> set[Path]:
        """Return the shared memory files that the processes of a run have mapped."""
        ...

    def read_progress(self, run_dir: Path, rank: int) -> dict[str, Any] | None:
        """Return what a rank's communicator last wrote about itself, or None."""
        ...

    def live(self, root: Path) -> tuple[int, ...]:
        """Return the processes of every run under `root`."""
        ...

    def stop(self, root: Path, grace: float, leftovers: Iterable[Path]) -> Stopped:
        """End every process of the runs under `root`, then remove the files they left behind.

        Raises RunError when processes are still there long after they were killed.
        """
        ...
