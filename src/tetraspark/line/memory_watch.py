"""The memory of every node, read now and then while a line starts."""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from tetraspark.errors import RunError
from tetraspark.fleet.command import NodeCommand, NodeRunner
from tetraspark.fleet.meminfo import Memory, read_meminfo

COMMAND = NodeCommand(("cat", "/proc/meminfo"), timeout=10.0)


class MemoryWatch:
    """Reads /proc/meminfo of all nodes at once, at most every `poll_seconds`.

    The first look is due at once. `clock` is in seconds.
    """

    def __init__(
        self,
        runner: NodeRunner,
        nodes: Iterable[str],
        poll_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._runner = runner
        self._nodes = tuple(nodes)
        self._poll = poll_seconds
        self._clock = clock
        self._due = clock()
        self.memory: dict[str, Memory | None] = dict.fromkeys(self._nodes)

    def look(self) -> bool:
        """Read anew if it is time; return whether `memory` is new.

        A node that cannot be asked has None: a session that hiccups says nothing about memory.
        """
        if self._clock() < self._due:
            return False
        with ThreadPoolExecutor(max(len(self._nodes), 1)) as pool:
            self.memory = dict(zip(self._nodes, pool.map(self._read, self._nodes), strict=True))
        self._due = self._clock() + self._poll
        return True

    def _read(self, node: str) -> Memory | None:
        try:
            result = self._runner.run(node, COMMAND)
        except RunError:
            return None
        return read_meminfo(result.stdout) if result.rc == 0 else None
