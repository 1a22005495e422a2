"""The GPU driver's complaints about memory in each node's kernel log, from one look to the next."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from tetraspark.errors import Problem, RunError
from tetraspark.fleet.command import NodeCommand, NodeRunner
from tetraspark.line.startup_guard import driver_short

DMESG = NodeCommand(("dmesg",), timeout=10.0)
BUDDYINFO = NodeCommand(("cat", "/proc/buddyinfo"), timeout=10.0)


class DriverWatch:
    """Reads `dmesg` of all nodes at once: when it is made, and when it is asked.

    Two looks, one before a start and one after: not for polling. A node whose login may not read
    the kernel log tells nothing.
    """

    def __init__(self, runner: NodeRunner, nodes: Iterable[str]) -> None:
        self._runner = runner
        self._nodes = tuple(nodes)
        self._before = self._all(DMESG)

    def problems(self) -> list[Problem]:
        """Return a problem for each node whose driver has found no memory since."""
        after, blocks = self._all(DMESG), self._all(BUDDYINFO)
        found = [
            driver_short(node, before, after[node] or "", blocks[node] or "")
            for node, before in self._before.items()
            if before is not None and after[node] is not None
        ]
        return [one for one in found if one is not None]

    def _all(self, command: NodeCommand) -> dict[str, str | None]:
        def read(node: str) -> str | None:
            try:
                result = self._runner.run(node, command)
            except RunError:
                return None
            return result.stdout if result.rc == 0 else None

        with ThreadPoolExecutor(max(len(self._nodes), 1)) as pool:
            return dict(zip(self._nodes, pool.map(read, self._nodes), strict=True))
