"""The runner protocol: the only thing that touches the machines of a line."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tetraspark.errors import Problem
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
class Part:
    """One thing of a line that is there: a process, or a container, which may have ended.

    `run` is the id of the run it belongs to, whoever started that.
    """

    run: str
    rank: int
    name: str
    running: bool = True


@dataclass(frozen=True)
class Present:
    """All that is there of a line; `unseen` has a problem for each node that kept it secret."""

    parts: tuple[Part, ...]
    unseen: tuple[Problem, ...] = ()

    @property
    def running(self) -> tuple[Part, ...]:
        """The parts that have not ended."""
        return tuple(part for part in self.parts if part.running)

    @property
    def runs(self) -> tuple[str, ...]:
        """The ids of their runs."""
        return tuple(sorted({part.run for part in self.parts}))


@dataclass(frozen=True)
class Stopped:
    """What a stop did: parts asked to end, parts that had to be killed, what was removed.

    `unverified` has a problem for each node where it is not known that nothing is left. `warnings`
    are records that were damaged or could not be written, and what was left alone; `start` says
    that a start under way was ended.
    """

    asked: tuple[str, ...] = ()
    killed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unverified: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    start: bool = False


class Runner(Protocol):
    """Starts, inspects and stops the ranks of the runs of a line.

    A line has a folder on this machine and each of its runs one below that, named by the run's
    id. What ranks say is in files there (fleet/run_files.py), whatever machine they are on.
    """

    @property
    def unit(self) -> str:
        """What the parts of a line are, in the plural."""
        ...

    @property
    def poll_seconds(self) -> float:
        """How often it is worth looking."""
        ...

    def start(self, commands: Sequence[RankCommand], run_dir: Path, key: str | None) -> None:
        """Start ranks, all at once, and return when they are started.

        `key` is the API key, for a rank that is to guard its API and cannot read the key's file.
        Raises RunError with the problem of every rank that could not be started.
        """
        ...

    def inspect(self, run_dir: Path, nodes: Sequence[str]) -> tuple[RankState, ...]:
        """Return the state of every rank of a run; `nodes` has the node of each.

        What the ranks have printed by then, and the state of their communicators, is in the
        run's files afterwards.
        """
        ...

    def shared_memory(self, run_dir: Path) -> set[Path]:
        """Return the shared memory files that a crash of the run's processes would leave."""
        ...

    def present(self, root: Path) -> Present:
        """Return all that is there of the line whose folder is `root`."""
        ...

    def stop(
        self, root: Path, grace: float, leftovers: Iterable[Path] = (), run: str | None = None
    ) -> Stopped:
        """End every part of the line whose folder is `root`, or of one run, and clean up.

        Parts that are still there after `grace` seconds are killed; `leftovers` are files to
        remove. Raises RunError when parts are still there long after they were killed.
        """
        ...

    def way_to(self, node: str, host: str, port: int) -> Path | None:
        """Return a socket file of this machine that leads to a TCP port, as the node sees it.

        None where the port is reached directly. Raises RunError when the node is not reached.
        """
        ...
