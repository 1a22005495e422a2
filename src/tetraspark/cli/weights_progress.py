"""How far the work on the weights is, node by node."""

import time

from rich.table import Table
from rich.text import Text

from tetraspark.cli.live import LiveView
from tetraspark.cli.output import err, shown
from tetraspark.weights.node_program import Progress

LINE_SECONDS = 5.0
"""How often a phase that goes on is told where there is no terminal."""

PHASES = {
    "look": "looking at {}",
    "looked": "looked at {}",
    "hash": "hashing on {}",
    "send": "sending to {}",
    "evict": "giving back the cache of {}",
    "do": "doing on {}",
    "read": "reading on {}",
    "done": "done with {}",
}
"""How a line tells of a phase of a node."""


class WeightsProgress(LiveView):
    """Shows how far each node is. Called from the threads of all nodes."""

    def __init__(self) -> None:
        super().__init__()
        self._latest: dict[str, Progress] = {}
        self._told: dict[tuple[str, str], float] = {}

    def observe(self, progress: Progress) -> None:
        """Take in how far a node is; elsewhere than on a terminal it is a line now and then."""
        with self._lock:
            self._latest[progress.node] = progress
            if err.is_terminal:
                return
            key, now = (progress.node, progress.phase), time.monotonic()
            if now - self._told.get(key, -LINE_SECONDS) >= LINE_SECONDS:
                self._told[key] = now
                more = " ".join(filter(None, (_share(progress), shown(progress.text))))
                told = PHASES[progress.phase].format(progress.node)
                err.print(f"{told}: {more}" if more else told, markup=False)

    def table(self) -> Table:
        """Return a row a node."""
        table = Table("node", "phase", "done", "", box=None, pad_edge=False)
        for node, one in list(self._latest.items()):
            words = Text(shown(one.text), overflow="ellipsis", no_wrap=True)
            table.add_row(node, one.phase, _share(one), words)
        return table


def size_text(count: float) -> str:
    """Return bytes as people read them: 1 GB is 10^9 bytes."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.2f} TB"


def _share(progress: Progress) -> str:
    total = progress.total
    return f"{size_text(progress.done)} of {size_text(total)}" if total else ""
