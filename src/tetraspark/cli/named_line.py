"""A line by its name alone: its runs, and how it is reached when its site is no use."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tetraspark.cli.line import load, open_nodes
from tetraspark.cli.output import err, print_problems
from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.fleet.containers import Containers
from tetraspark.fleet.local import LocalRunner
from tetraspark.fleet.login import Login
from tetraspark.fleet.record_file import of_shape
from tetraspark.fleet.runner import Runner
from tetraspark.line.run import RunStore, lines_of
from tetraspark.line.run_shapes import StoredPlan
from tetraspark.receipts.store import ReceiptStore


def store_of(site: Path, line: str | None) -> RunStore:
    """Return the runs of the line of a name, or else of a site.

    Raises UsageError for a name that no line was served by, and for a site that cannot be used.
    """
    if line is None:
        return RunStore(load(site).site.name)
    store = RunStore(line)
    if line in lines_of(store.root.parent):
        return store
    served = lines_of(store.root.parent)
    wanted = f"one of: {', '.join(served)}" if served else "a line that was served"
    raise UsageError(Problem("--line", f"no line {line!r}", wanted))


@contextlib.contextmanager
def open_runner(plan: dict[str, Any] | None) -> Iterator[Runner]:
    """Open what a plan, as JSON, was executed with: no site is needed.

    Without a plan, too, the processes of a line on this machine are found by their label.
    """
    if plan is None or plan["kind"] == "local":
        yield LocalRunner()
        return
    with open_nodes(tuple(map(Login.of, plan["logins"]))) as nodes:
        yield Containers(nodes, nodes.logins, plan["site"])


def told_plan(store: RunStore) -> dict[str, Any] | None:
    """Return the newest run's plan, or None where it is damaged, which is told."""
    run = store.latest()
    assert run is not None, "a line that was served has a run"
    try:
        return run.plan()
    except RunError as error:
        print_problems(error.problems, "warning", "yellow")
        return None


def reached_by(store: RunStore) -> dict[str, Any] | None:
    """Return the plan that tells how a line is reached without its site: the newest run's.

    Where that is damaged, which is told, the newest one that can be read, of a run or of a
    receipt, stands in for it: parts are found by the line's name, and nodes seldom change. None
    where there is none.
    """
    if (plan := told_plan(store)) is not None:
        return plan
    older = store.planned()
    if older is not None:
        err.print(f"its nodes are looked for as run {older[0].id} had them", markup=False)
        return older[1]
    receipts = ReceiptStore(store.root)
    for id in reversed(receipts.ids()):
        with contextlib.suppress(UsageError, ValueError):
            known: dict[str, Any] = of_shape(receipts.read(id).plan, StoredPlan)
            err.print(f"its nodes are looked for as receipt {id} has them", markup=False)
            return known
    return None
