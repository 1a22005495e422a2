"""Runs on disk: one folder a run, under one folder a line, under the user's state folder."""

import contextlib
import fcntl
import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tetraspark.errors import Problem, RunError
from tetraspark.fleet.run_files import write_atomically
from tetraspark.fleet.state_home import require_writable, state_home
from tetraspark.line.plan import Plan

KEPT_RUNS = 20


@dataclass(frozen=True)
class Run:
    """A run's folder: plan.json, state.json, effective.json, and rankN.log and rankN.exit."""

    folder: Path

    @property
    def id(self) -> str:
        """The run's name, which begins with the time it was made."""
        return self.folder.name

    def read(self) -> dict[str, Any]:
        """Return state.json, or what can be told without it."""
        try:
            state = json.loads((self.folder / "state.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {"phase": "unknown"}
        return state if isinstance(state, dict) else {"phase": "unknown"}

    def plan(self) -> dict[str, Any]:
        """Return plan.json. Raises RunError when it is gone or damaged."""
        path = self.folder / "plan.json"
        try:
            plan = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise RunError(
                Problem(
                    str(path), f"not readable: {error}", "the plan of the run", "tetraspark stop"
                )
            ) from error
        if not isinstance(plan, dict):
            raise RunError(Problem(str(path), "not a plan", "an object", "tetraspark stop"))
        return plan

    def keep_effective(self, values: list[dict[str, Any]]) -> None:
        """Write effective.json: what the engine says it runs with, beside what was planned."""
        write_atomically(self.folder / "effective.json", values)

    def effective(self) -> list[dict[str, Any]] | None:
        """Return effective.json; None for a start that did not come so far."""
        try:
            values = json.loads((self.folder / "effective.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return values if isinstance(values, list) else None

    @contextlib.contextmanager
    def launching(self) -> Iterator[None]:
        """Hold the mark of a launcher at work; a launcher that dies lets go of it."""
        with (self.folder / "launcher").open("w", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def is_launching(self) -> bool:
        """Tell whether the launcher of this run is still at work."""
        try:
            with (self.folder / "launcher").open("r", encoding="utf-8") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except FileNotFoundError:
            return False
        return False

    def record(self, **fields: object) -> None:
        """Merge fields into state.json, in one step for whoever reads it."""
        state = self.read() | fields
        write_atomically(self.folder / "state.json", state)


class RunStore:
    """The runs of one line."""

    def __init__(self, line: str, home: Path | None = None) -> None:
        self.root = (home or state_home()) / line

    def create(self, plan: Plan) -> Run:
        """Make a run folder with its plan, before anything is started."""
        stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
        run = Run(self.root / stamp)
        run.folder.mkdir(parents=True, mode=0o700)
        write_atomically(run.folder / "plan.json", plan.as_dict())
        run.record(phase="start", since=time.time())
        self._prune()
        return run

    def runs(self) -> list[Run]:
        """Return the runs of the line, oldest first; names begin with their UTC time."""
        return [Run(path.parent) for path in sorted(self.root.glob("*/plan.json"))]

    def latest(self) -> Run | None:
        """Return the newest run, or None when the line was never served."""
        return next(reversed(self.runs()), None)

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
        with (self.root / "lock").open("w", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
