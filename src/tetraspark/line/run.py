"""Runs on disk: one folder a run, under one folder a line, under the user's state folder."""

import contextlib
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tetraspark.errors import Problem, RunError
from tetraspark.fleet import file_lock
from tetraspark.fleet.record_file import read_record, set_aside
from tetraspark.fleet.run_files import write_atomically
from tetraspark.fleet.state_home import require_writable, state_home
from tetraspark.line.plan import Plan
from tetraspark.line.run_shapes import EFFECTIVE, StoredPlan, StoredState

KEPT_RUNS = 20
TURN_SECONDS = 5.0
STAMP = "%Y%m%d-%H%M%S"
ID = f"{STAMP}-%f"
PLAN = "plan.json"
STATE = "state.json"
LAUNCHER = "launcher"
LOCK = "lock"
READY = "ready"
STOPPED = "stopped"
UNKNOWN = {"phase": "unknown"}


@dataclass(frozen=True)
class Run:
    """A run's folder: plan.json, state.json, effective.json, and rankN.log and rankN.exit."""

    folder: Path

    @property
    def id(self) -> str:
        """The run's name: the time it was made, or later where the clock was set back."""
        return self.folder.name

    @property
    def made_at(self) -> float:
        """When it was made, by its name, as Unix time; 0.0 for another name."""
        try:
            return datetime.strptime(f"{self.id[:15]}+0000", f"{STAMP}%z").timestamp()
        except ValueError:
            return 0.0

    def read(self) -> dict[str, Any]:
        """Return state.json, or what can be told without it; `damaged` tells why it is not there.

        It has at least `phase`, which is "unknown" then.
        """
        try:
            return self._state() or dict(UNKNOWN)
        except RunError:
            return dict(UNKNOWN)

    def plan(self) -> dict[str, Any]:
        """Return plan.json. Raises RunError when it is gone or damaged."""
        path, wanted = self.folder / PLAN, "the plan of the run, as `tetraspark serve` wrote it"
        fix = f"tetraspark stop --line {self.folder.parent.name} ends it without; then serve again"
        found: dict[str, Any] | None = read_record(path, StoredPlan, wanted, fix)
        if found is None:
            raise RunError(Problem(str(path), "no such file", wanted, fix))
        return found

    def keep_effective(self, values: list[dict[str, Any]]) -> None:
        """Write effective.json: what the engine says it runs with, beside what was planned."""
        write_atomically(self.folder / "effective.json", values)

    def effective(self) -> list[dict[str, Any]] | None:
        """Return effective.json; None for a start that did not come so far.

        Raises RunError where it is damaged.
        """
        wanted = "what the engine said it runs with when the line became ready"
        fix = "tetraspark serve --replace asks it anew"
        path = self.folder / "effective.json"
        found: list[dict[str, Any]] | None = read_record(path, EFFECTIVE, wanted, fix)
        return found

    def damaged(self) -> Problem | None:
        """Return what is wrong with state.json; None where it is as it was written, or not there.

        Everything that goes on without it says so.
        """
        try:
            self._state()
        except RunError as error:
            return error.problems[0]
        return None

    def _state(self) -> dict[str, Any] | None:
        wanted = "how far the start of the run came, as `tetraspark serve` wrote it"
        fix = "tetraspark serve --replace starts again, tetraspark stop ends it"
        found: dict[str, Any] | None
        found = read_record(self.folder / STATE, StoredState, wanted, fix)
        return found

    @contextlib.contextmanager
    def launching(self) -> Iterator[None]:
        """Hold the mark of a launcher at work; a launcher that dies lets go of it."""
        with (self.folder / LAUNCHER).open("a+", encoding="utf-8") as file:
            file_lock.take(file)
            yield

    def is_launching(self) -> bool:
        """Tell whether the launcher of this run is still at work."""
        return file_lock.held(self.folder / LAUNCHER) is not None

    def record(self, **fields: object) -> Path | None:
        """Merge fields into state.json, in one step for whoever reads it.

        One that is damaged is set aside; returns where. Raises OSError where there is no room.
        """
        with self._turn():
            return self._merge(fields)

    def advance(self, phase: str, **fields: object) -> bool:
        """Record the next phase of a start; False, and nothing, where another command stopped it.

        Raises OSError, as `record` does.
        """
        with self._turn():
            stopped = self.is_stopped()
            if not stopped:
                self._merge({**fields, "phase": phase})
        return not stopped

    def is_stopped(self) -> bool:
        """Tell whether another command has stopped this run."""
        return bool(self.read()["phase"] == STOPPED)

    def _merge(self, fields: dict[str, Any]) -> Path | None:
        path = self.folder / STATE
        aside = set_aside(path) if self.damaged() else None
        write_atomically(path, self.read() | fields)
        return aside

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Keep other writers of state.json away: none may write what it read before another's.

        One that was frozen in its turn is not waited for: a stop must come to its end.
        """
        deadline = time.monotonic() + TURN_SECONDS
        with (self.folder / "state.lock").open("a+", encoding="utf-8") as file:
            while True:
                with contextlib.suppress(BlockingIOError):
                    file_lock.take(file)
                    break
                if time.monotonic() > deadline:
                    break
                time.sleep(0.01)
            yield


def lines_of(home: Path) -> list[str]:
    """Return the names of the lines that were served from this machine: those that have runs."""
    return sorted(path.name for path in home.glob("*") if RunStore(path.name, home).runs())


class RunStore:
    """The runs of one line."""

    def __init__(self, line: str, home: Path | None = None) -> None:
        self.root = (home or state_home()) / line

    def create(self, plan: Plan, now: datetime | None = None) -> Run:
        """Make a run folder with its plan, before anything is started; `now` is in UTC."""
        run = Run(self.root / self._next_id(now or datetime.now(UTC)))
        run.folder.mkdir(parents=True, mode=0o700)
        write_atomically(run.folder / PLAN, plan.as_dict())
        run.record(phase="start", since=time.time())
        self._prune()
        return run

    def runs(self) -> list[Run]:
        """Return the runs of the line, oldest first, as their names sort."""
        return [Run(path.parent) for path in sorted(self.root.glob(f"*/{PLAN}"))]

    def latest(self) -> Run | None:
        """Return the newest run, or None when the line was never served."""
        return next(reversed(self.runs()), None)

    def _next_id(self, now: datetime) -> str:
        """Return the time as a name, or the first after the newest run where the clock is behind.

        Names are the order of runs and of their receipts, and a clock may be set back.
        """
        newest = self.latest()
        with contextlib.suppress(ValueError):  # A folder that somebody named tells no time.
            if newest is not None:
                made = datetime.strptime(newest.id, ID).replace(tzinfo=UTC)
                now = max(now, made + timedelta(microseconds=1))
        return now.strftime(ID)

    def planned(self) -> tuple[Run, dict[str, Any]] | None:
        """Return the newest run whose plan can be read, and that; None where there is none."""
        for run in reversed(self.runs()):
            with contextlib.suppress(RunError):
                return run, run.plan()
        return None

    def _prune(self) -> None:
        """Forget the oldest runs, logs and all."""
        for run in self.runs()[:-KEPT_RUNS]:
            shutil.rmtree(run.folder)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other launchers of this line out.

        Raises RunError when one is at work, UsageError where no run could be kept.
        """
        require_writable(self.root)
        with (self.root / LOCK).open("a+", encoding="utf-8") as file:
            try:
                file_lock.take(file)
            except BlockingIOError as error:
                raise RunError(
                    Problem(
                        where=str(self.root),
                        seen="another `tetraspark serve` is starting this line",
                        wanted="one launcher at a time",
                        fix="wait for it, or `tetraspark stop`",
                    )
                ) from error
            yield

    def is_locked(self) -> bool:
        """Tell whether a launcher of this line is about to start it, and holds the lock."""
        return file_lock.held(self.root / LOCK) is not None
