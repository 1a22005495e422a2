"""What is shown every look at a start, and ends the start when it has seen enough."""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from tetraspark.errors import Problem, RunError
from tetraspark.fleet.command import NodeRunner
from tetraspark.fleet.rank import RankState
from tetraspark.line.engine_facts import EngineFacts, engine_problems
from tetraspark.line.engine_log import Line
from tetraspark.line.memory_watch import MemoryWatch
from tetraspark.line.startup_guard import ending, warnings
from tetraspark.site.load import LoadedSite

LISTENING = ("warmup", "canary")
"""Phases in which every rank has made its KV pool: its log has told of it by then."""


class Look(Protocol):
    """One look at a start: the phase it is in, the states of all ranks, their new lines."""

    @property
    def phase(self) -> str:
        """The phase's name."""
        ...

    @property
    def states(self) -> Sequence[RankState]:
        """The states, in rank order."""
        ...

    @property
    def lines(self) -> Sequence[Line]:
        """The new lines of all ranks, those of a rank in order."""
        ...


class MemoryGuard:
    """Ends a start for a node without memory, or a rank that the kernel killed for it.

    `warn` is told of each node once when the page cache holds its memory.
    """

    def __init__(
        self,
        loaded: LoadedSite,
        runner: NodeRunner,
        warn: Callable[[Problem], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = loaded.site.startup
        self._nodes = [node.name for node in loaded.site.nodes]
        self._watch = MemoryWatch(runner, self._nodes, self._limits.poll_seconds, clock)
        self._warn = warn
        self._warned: set[str] = set()

    def __call__(self, look: Look) -> None:
        """Judge a look. Raises RunError with what ends the start."""
        if self._watch.look():
            for problem in warnings(self._watch.memory, self._limits):
                if problem.where not in self._warned:
                    self._warned.add(problem.where)
                    self._warn(problem)
        end = ending(look.states, self._nodes, self._watch.memory, self._limits)
        if end is not None:
            raise RunError(end)


class EngineGuard:
    """Ends a start whose logs tell of another KV pool than pinned, of sockets, of two NCCLs."""

    def __init__(self, loaded: LoadedSite) -> None:
        self._nodes = [node.name for node in loaded.site.nodes]
        self._pin = loaded.site.engine.kv_tokens
        self._fabric = loaded.site.fabric is not None
        self.facts = {rank: EngineFacts() for rank in range(len(self._nodes))}

    def __call__(self, look: Look) -> None:
        """Judge a look. Raises RunError with every problem, rank by rank."""
        for line in look.lines:
            self.facts[line.rank] = self.facts[line.rank].read(line.text)
        if look.phase in LISTENING:
            problems = engine_problems(self.facts, self._nodes, self._pin, self._fabric)
            if problems:
                raise RunError(*problems)
