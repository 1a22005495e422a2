"""Where a start is, for whoever watches it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from tetraspark.fleet.rank import RankState
from tetraspark.line.engine_log import Line

Phase = Literal["import", "load", "warmup", "canary"]


@dataclass(frozen=True)
class Progress:
    """Where a start is: the phase, seconds in it and its limit, and the rank waited for."""

    phase: Phase
    seconds: float
    limit: int
    rank: int
    last_line: str


@dataclass(frozen=True)
class Look:
    """What one look at a start found: the phase, the states of all ranks, their new lines."""

    phase: Phase
    states: tuple[RankState, ...]
    lines: Sequence[Line]


Watcher = Callable[[Look], None]
"""Is shown every look at a start; raises RunError to end it."""
