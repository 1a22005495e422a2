"""What a start does for its receipt: look before it, take it after; a ready line stays ready."""

from collections.abc import Mapping
from pathlib import Path

from tetraspark.cli.line import OpenLine
from tetraspark.cli.output import print_problems
from tetraspark.errors import Problem, TetrasparkError
from tetraspark.fleet.meminfo import read_meminfo
from tetraspark.fleet.probe import probe_all
from tetraspark.fleet.this_machine import HERE, ThisMachine
from tetraspark.line.fleet_start import FleetStart
from tetraspark.line.run import Run
from tetraspark.line.serve import Served
from tetraspark.receipts.look import receipt_wanted, served_nodes
from tetraspark.receipts.receipt import ServedNode
from tetraspark.receipts.store import ReceiptStore
from tetraspark.receipts.take import take_receipt


class ReceiptTaker:
    """Takes the receipt of one start; made before it, since then this machine may be idle."""

    def __init__(
        self, line: OpenLine, start: FleetStart | None, key: str | None, rollback_of: str | None
    ) -> None:
        self._line = line
        self._start = start
        self._key = key
        self._rollback_of = rollback_of
        self._here = _idle_here(line) if start is None else {}

    def keep(self, served: Served) -> None:
        """Take the receipt of a line that is ready, and keep it; warns where that fails."""
        line = self._line
        store = ReceiptStore(line.store.root)
        run = Run(line.store.root / served.run)
        try:
            receipt = take_receipt(
                line.loaded, run, served, self._nodes(), self._key, self._rollback_of
            )
            store.keep(receipt)
        except (OSError, TetrasparkError) as error:
            where, fix = str(store.path(run.id)), f"ls -ld {store.folder}; df {store.folder}"
            wanted = "a receipt of every line that became ready; the line itself is"
            print_problems([Problem(where, f"not kept: {error}", wanted, fix)], "warning", "yellow")

    def _nodes(self) -> tuple[ServedNode, ...]:
        loaded, start = self._line.loaded, self._start
        if start is None:
            found = probe_all(ThisMachine(), receipt_wanted(loaded))
            return served_nodes(loaded, found, {}, self._here)
        idle = {node: state.available for node, state in start.states.items()}
        return served_nodes(loaded, start.found, start.images, idle)


def _idle_here(line: OpenLine) -> Mapping[str, int]:
    """Return what this machine has available, unless the line is there already."""
    if line.runner.present(line.store.root).parts:
        return {}
    found = read_meminfo(Path("/proc/meminfo").read_text(encoding="utf-8"))
    return {HERE: found.available} if found else {}
