"""Copy the checkpoint from the head to the workers, all at once, and keep the receipt."""

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tetraspark.errors import Problem, RunError
from tetraspark.fleet.command import NodeRunner
from tetraspark.fleet.state_home import require_writable
from tetraspark.weights.compare import Reference, differences, unreadable
from tetraspark.weights.copy_plan import CopyPlan
from tetraspark.weights.each_node import on_each, parted
from tetraspark.weights.node_program import Observe
from tetraspark.weights.receipt import Receipt, read_receipt, write_receipt
from tetraspark.weights.tally import Tally, take_tally, tree_sha256
from tetraspark.weights.worker_copy import Copied, WorkerCopy


@dataclass(frozen=True)
class CopyReport:
    """What came of a copy on each worker.

    `source` are the head's files with their hashes, None when they could not be hashed; `faults`
    are what is wrong with those.
    """

    source: Tally | None
    outcomes: Mapping[str, Copied | RunError]
    faults: tuple[Problem, ...] = ()

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything that went wrong, each once."""
        return (*self.faults, *parted(self.outcomes)[1])

    def as_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        return {
            "ok": not self.problems,
            "tree": tree_sha256(self.source.sums) if self.source else None,
            "nodes": [asdict(one) for one in parted(self.outcomes)[0].values()],
            "problems": [problem.as_dict() for problem in self.problems],
        }


def copy_weights(
    plan: CopyPlan, runner: NodeRunner, receipt_path: Path, observe: Observe
) -> CopyReport:
    """Do what was planned; a worker that fails does not stop the others.

    The receipt gets the head and the workers that have its files. Raises RunError for a receipt
    that cannot be read, and UsageError where none can be written, before anything is sent.
    """
    require_writable(receipt_path.parent)
    before, names = read_receipt(receipt_path), list(plan.source.files)

    def hash_head() -> Tally:
        found = take_tally(runner, plan.place.head, plan.place.path, observe, names)
        faults = tuple(unreadable(found))
        if faults:
            raise RunError(*faults)
        return found

    with ThreadPoolExecutor(1) as pool:
        head = pool.submit(hash_head)

        def one(node: str) -> Copied:
            transfer = plan.transfers[node]
            if isinstance(transfer, RunError):
                raise transfer
            return WorkerCopy(transfer, plan.source, runner, observe).run(head)

        outcomes = on_each(runner, plan.transfers, one)
    if head.exception() is not None:
        return CopyReport(None, outcomes)
    source = head.result()
    faults = _record(receipt_path, before, plan.place.path, source, outcomes)
    return CopyReport(source, outcomes, faults)


def _record(
    path: Path,
    before: Receipt | None,
    model: str,
    source: Tally,
    outcomes: Mapping[str, Copied | RunError],
) -> tuple[Problem, ...]:
    """Write the receipt, or return how the head's files differ from the one there is."""
    if before is not None:
        fix = "if the checkpoint is another one now: tetraspark weights verify --renew"
        faults = differences(Reference(f"the receipt {path}", before.sums), source, fix)
        if faults:
            return tuple(faults)
    folders = {node: one.folder for node, one in parted(outcomes)[0].items()}
    base = before or Receipt.of(model, source)
    write_receipt(path, base.verified({source.node: source.folder, **folders}, time.time()))
    return ()
