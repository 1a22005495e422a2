"""What one node is asked to do with its shards, and what it answers, line by line. Pure."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from tetraspark.engram.layout import Split, Table, shard_range
from tetraspark.engram.manifest import FORMAT, HEADER_BYTES
from tetraspark.engram.shard import shard_name
from tetraspark.errors import Problem

SAMPLES = 64
"""Rows of a shard that are proven one by one: a few reads, at every start of a line."""

Mode = Literal["pack", "verify"]


@dataclass(frozen=True)
class Slice:
    """The rows of one layer that a rank gets, and the file's name without its ending."""

    table: Table
    rank: int
    tp: int
    split: Split

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return shard_name(self.table.layer, self.rank, self.tp)

    @property
    def rows(self) -> tuple[int, int]:
        """First row and end."""
        return shard_range(self.table.rows, self.table.columns, self.split, self.rank, self.tp)

    @property
    def bytes(self) -> int:
        """Bytes of the file."""
        first, end = self.rows
        return HEADER_BYTES + (end - first) * self.table.row_bytes

    def asked(self, layers: Iterable[int]) -> dict[str, Any]:
        """Return what the program is told of it; most of it goes into the manifest as it is."""
        return {
            "name": self.name,
            "dim": self.table.dim,
            "scales": self.table.scales,
            "format": FORMAT,
            "layer": self.table.layer,
            "layers": list(layers),
            "rank": self.rank,
            "tp": self.tp,
            "split": self.split,
            "rows": list(self.rows),
            "table_rows": self.table.rows,
            "columns": list(self.table.columns) if self.split == "columns" else [],
        }


def slices(tables: Iterable[Table], rank: int, tp: int, split: Split) -> tuple[Slice, ...]:
    """Return the shards of a rank. Raises ValueError for a rank that there is not."""
    if not 0 <= rank < tp:
        raise ValueError(f"rank {rank} of {tp}")
    return tuple(Slice(table, rank, tp, split) for table in tables)


def request(
    mode: Mode, model: str, folder: str, shards: Iterable[Slice], *, replace: bool = False
) -> dict[str, Any]:
    """Return what the program on a node is asked; a leading `~` is the login's home there."""
    wanted = tuple(shards)
    layers = [one.table.layer for one in wanted]
    return {
        "mode": mode,
        "model": model,
        "folder": folder,
        "shards": [one.asked(layers) for one in wanted],
        "samples": SAMPLES,
        "replace": replace,
    }


@dataclass(frozen=True)
class Event:
    """One line of the program: `event` says of what kind, `words` what more there is."""

    event: str
    words: dict[str, Any]

    def problem(self, node: str) -> Problem:
        """Return the problem that an event "problem" tells."""
        where, seen, wanted, fix = (str(self.words.get(key, "")) for key in _PROBLEM)
        return Problem(f"{node} {where}", seen, wanted, fix)


_PROBLEM = ("where", "seen", "wanted", "fix")


def read_event(line: str) -> Event | None:
    """Return the event in a line; None for a line of anything else."""
    try:
        words = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(words, dict) or not isinstance(words.get("event"), str):
        return None
    return Event(words.pop("event"), words)
