"""How a pack looks: one bar a node on a terminal, lines elsewhere; the plan, the report."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Table
from rich.text import Text

from tetraspark.cli.output import err, out
from tetraspark.cli.weights_progress import size_text
from tetraspark.engram.plan import PackPlan
from tetraspark.engram.request import Event
from tetraspark.engram.run import PackReport

LINE_SECONDS = 30.0


class PackView:
    """Shows how far each node is. Called from the threads of all nodes."""

    def __init__(self, plan: PackPlan) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(True))
        rates = (TransferSpeedColumn(), TimeRemainingColumn())
        self._bars = Progress(*columns, *rates, console=err, transient=True)
        self._sizes = {
            part.node: {one.name: one.bytes for one in part.shards} for part in plan.nodes
        }
        self._done: dict[str, dict[str, int]] = {node: {} for node in self._sizes}
        self._tasks = {
            node: self._bars.add_task(node, total=sum(sizes.values()))
            for node, sizes in self._sizes.items()
        }
        self._told = dict.fromkeys(self._sizes, time.monotonic())
        self._lock = threading.Lock()

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the bars meanwhile, on a terminal."""
        if not err.is_terminal:
            yield
            return
        with self._bars:
            yield

    def observe(self, node: str, event: Event) -> None:
        """Take in an event; elsewhere than on a terminal a line tells of it, now and then."""
        if "shard" not in event.words:
            return
        name, what = str(event.words["shard"]), str(event.words.get("what", event.event))
        ended = event.event != "progress"
        done = self._sizes[node][name] if ended else int(event.words["done"])
        with self._lock:
            self._done[node][name] = done
            self._bars.update(
                self._tasks[node],
                completed=sum(self._done[node].values()),
                description=f"{node} {what} {name}",
            )
            if not err.is_terminal and (ended or self._due(node)):
                size = f"{size_text(done)} of {size_text(self._sizes[node][name])}"
                err.print(f"{node} {what} {name}: {size}", markup=False)

    def _due(self, node: str) -> bool:
        now = time.monotonic()
        if now - self._told[node] < LINE_SECONDS:
            return False
        self._told[node] = now
        return True


def print_pack_plan(plan: PackPlan) -> None:
    """Print what would be packed where."""
    columns = ("node", "rank", "file", "rows", "size", "there", "free")
    table = Table(*columns, box=None, pad_edge=False)
    for part in plan.nodes:
        free = "" if part.free is None else size_text(part.free)
        for one in part.shards:
            first, end = one.rows
            there = "" if part.there is None else f"{100 * part.there[one.name] / one.bytes:.0f}%"
            cells = (part.node, str(part.rank), f"{part.folder}/{one.name}.bin")
            numbers = (f"{first} to {end}", size_text(one.bytes), there, free)
            table.add_row(*(Text(cell) for cell in (*cells, *numbers)))
    out.print(table)
    out.print(f"{plan.mode}, tables divided by {plan.split}; nothing was done", markup=False)


def print_pack_report(report: PackReport) -> None:
    """Print what came of each shard."""
    table = Table("node", "rank", "shard", "size", "state", box=None, pad_edge=False)
    for node in report.nodes:
        for one in node.shards:
            state = "damaged" if one.faults else one.state
            cells = (node.node, str(node.rank), one.name, size_text(one.bytes), state)
            table.add_row(*(Text(cell) for cell in cells))
    out.print(table)
