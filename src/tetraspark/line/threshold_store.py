"""Measured thresholds on disk: one file a key, beside the folders of the lines."""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tetraspark.collectives.thresholds import ThresholdKey, Thresholds
from tetraspark.errors import Problem, UsageError
from tetraspark.fleet.run_files import write_atomically
from tetraspark.fleet.state_home import require_writable, state_home
from tetraspark.site.source import read_bytes

SCHEMA = 1
FOLDER = "_thresholds"
"""No name of a line: those begin with a letter or a digit."""


@dataclass(frozen=True)
class Stored:
    """Thresholds with the file they are in, and how they were measured (JSON-able, for people)."""

    path: Path
    thresholds: Thresholds
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
        found = json.loads(read_bytes(path))
        if not isinstance(found, dict) or set(found) != {"schema", "thresholds", "measured"}:
            raise ValueError("not a file of `tetraspark tune`")
        if found["schema"] != SCHEMA:
            raise ValueError(f"schema {found['schema']!r}, not {SCHEMA}")
        thresholds = Thresholds.read(found["thresholds"])
        if path.stem != thresholds.key.name:
            raise ValueError(f"it holds the thresholds of {thresholds.key.name}")
        if not isinstance(found["measured"], dict):
            raise ValueError("`measured` is no table")
    except (UsageError, ValueError, RecursionError) as error:
        seen = error.problems[0].seen if isinstance(error, UsageError) else str(error)
        raise UsageError(Problem(str(path), seen, wanted, fix)) from error
    return Stored(path, thresholds, found["measured"])
