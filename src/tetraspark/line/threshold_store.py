"""Measured thresholds on disk: one file a key, beside the folders of the lines."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field

from tetraspark.collectives.thresholds import ThresholdKey, Thresholds
from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.fleet.record_file import Shape, read_record
from tetraspark.fleet.run_files import write_atomically
from tetraspark.fleet.state_home import require_writable, state_home

SCHEMA = 1
SHOWN = 300
"""Characters of what is wrong: it may repeat a file."""
FOLDER = "_thresholds"
"""No name of a line: those begin with a letter or a digit."""


@dataclass(frozen=True)
class Stored:
    """Thresholds with the file they are in, and how they were measured (JSON-able, for people)."""

    path: Path
    thresholds: Thresholds
    measured: dict[str, Any]


class StoredFile(Shape):
    """A file of the store, with no other keys; `Thresholds.read` reads what is in it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    # `schema` is the name of a method of pydantic's, too.
    version: int = Field(alias="schema")
    thresholds: dict[str, Any]
    measured: dict[str, Any]


class ThresholdStore:
    """The files. Each is read whole and strictly: a damaged one is refused, never passed over."""

    def __init__(self, home: Path | None = None) -> None:
        self.root = (home or state_home()) / FOLDER

    def path(self, key: ThresholdKey) -> Path:
        """Return the file for a key, there or not."""
        return self.root / f"{key.name}.json"

    def require(self) -> None:
        """Raise UsageError where nothing could be kept: to measure takes minutes."""
        require_writable(self.root)

    def write(self, thresholds: Thresholds, measured: dict[str, Any]) -> Path:
        """Keep thresholds under their key, in place of older ones; returns the file."""
        path = self.path(thresholds.key)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        told = {"schema": SCHEMA, "thresholds": thresholds.as_dict(), "measured": measured}
        write_atomically(path, told)
        return path

    def read(self, key: ThresholdKey) -> Stored | None:
        """Return what is stored for a key, or None. Raises UsageError for a damaged file."""
        path = self.path(key)
        return _read(path) if path.exists() or path.is_symlink() else None

    def all(self) -> list[Stored]:
        """Return everything that is stored. Raises UsageError for a damaged file."""
        return [_read(path) for path in sorted(self.root.glob("*.json"))]


def _read(path: Path) -> Stored:
    """Return a file's content; its name must be that of the key in it."""
    wanted = "thresholds as `tetraspark tune` writes them, under the name of their key"
    fix = f"rm {shlex.quote(str(path))}, then measure again: tetraspark tune"
    try:
        found = read_record(path, StoredFile, wanted, fix)
        if found is None:
            raise ValueError("no such file any more")
        if found["schema"] != SCHEMA:
            raise ValueError(f"schema {found['schema']!r}, not {SCHEMA}")
        thresholds = Thresholds.read(found["thresholds"])
        if path.stem != thresholds.key.name:
            raise ValueError(f"it holds the thresholds of {thresholds.key.name}")
    except RunError as error:
        raise UsageError(*error.problems) from error
    except ValueError as error:
        raise UsageError(Problem(str(path), str(error)[:SHOWN], wanted, fix)) from error
    return Stored(path, thresholds, found["measured"])
