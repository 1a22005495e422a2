"""How the ring's verbs show what they found and did."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from tetraspark.cli.fabric_table import unbroken
from tetraspark.cli.output import out, print_problems, shown
from tetraspark.ring.apply import Applied
from tetraspark.ring.diff import Diff
from tetraspark.ring.receipt import Receipt
from tetraspark.ring.rollback import RolledBack
from tetraspark.ring.status import RingStatus, phase

COLOURS = {
    "present": "green",
    "missing": "yellow",
    "different": "yellow",
    "not-in-hardware": "red",
    "conflict": "red",
    "no-link": "red",
    "ok": "green",
    "warning": "yellow",
    "failed": "red",
    "unknown": "yellow",
}


def print_diff(found: Diff) -> None:
    """Print what is not as planned, node by node."""
    table = unbroken("node", "object", "state", "detail")
    for view in found.views:
        for one in view.wrong:
            table.add_row(view.node, one.key, _coloured(one.state), shown(one.detail))
        for queue in view.hairpin:
            if queue.state != "in effect":
                name = f"hairpin {queue.netdev}"
                table.add_row(view.node, name, Text(queue.state, "yellow"), queue.detail)
        for path in view.leftovers:
            table.add_row(view.node, path, Text("leftover", "yellow"), "names a ring's device")
    if table.row_count:
        out.print(table)
    print_problems(found.problems)
    count = sum(len(view.objects) for view in found.views)
    good = count - sum(len(view.wrong) for view in found.views)
    if not found.views:
        out.print("unknown: no node was seen")
        return
    word = "same" if found.same else "different"
    if found.problems and not any(view.wrong for view in found.views):
        word = "unknown"
    out.print(f"{word}: {good} of {count} objects as plan {found.plan[:12]} wants them")


def print_applied(done: Applied, words: Sequence[str]) -> None:
    """Print what an apply did, and what to type before the time is over.

    `words` name the plan and the site on a command line.
    """
    if not done.changed:
        out.print(f"plan {done.plan[:12]} was in place: nothing changed")
        return
    for node, count in done.done.items():
        out.print(f"{node}: {count} changes, {done.present[node]} objects were there", markup=False)
    left = f"{done.seconds_left:.0f} s"
    out.print(f"[bold yellow]undone by itself in {left}[/], unless before that:")
    for verb in ("verify", "confirm"):
        out.print(f"  {shlex.join(['tetraspark', 'ring', verb, *words])}", markup=False)


def print_hairpin(queues: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Print the queues of every function."""
    table = unbroken("node", "device", "queues", "size", "state")
    for node, functions in queues.items():
        for one in functions:
            table.add_row(
                node,
                one["netdev"],
                str(one["queues"]),
                str(one["size"]),
                one.get("state", "put back"),
            )
    out.print(table)


def print_receipt(found: Receipt) -> None:
    """Print every finding, and the verdict."""
    table = unbroken("check", "node", "verdict", "observed", "wanted")
    for one in found.checks:
        table.add_row(one.id, one.node, _coloured(one.verdict), shown(one.observed), one.wanted)
    out.print(table)
    word, style = ("passed", "green") if found.passed else ("not passed", "red")
    text = f": receipt {found.id[:12]} of plan {found.plan[:12]}; traffic: {found.traffic}"
    out.print(Text.assemble((word, f"bold {style}"), text))


def print_rolled_back(found: RolledBack) -> None:
    """Print what every node undid, and what differs from before."""
    for node, one in found.nodes.items():
        word = f"{one['outcome']}: {len(one['undone'])} undone"
        out.print(f"{node}: {word}, {len(one['left'])} left alone", markup=False)
    print_problems(found.problems)


def print_status(found: RingStatus) -> None:
    """Print each node's phase and objects, and the receipt."""
    table = unbroken("node", "phase", "objects", "owned", "markers")
    for view in found.found.views:
        owned = "0" if view.journal is None else str(len(view.journal.owned))
        markers = [one for one in view.objects if one.kind == "marker"]
        running = sum(one.state == "present" for one in markers)
        good = len(view.objects) - len(view.wrong)
        counts = (f"{good} of {len(view.objects)}", owned, f"{running} of {len(markers)}")
        table.add_row(view.node, phase(view, found.found.plan), *counts)
    out.print(table)
    print_problems(found.found.problems, "not seen", "yellow")
    if found.receipt is None:
        out.print("receipt: none; tetraspark ring verify PLAN")
    elif found.fresh:
        out.print(f"receipt: {found.receipt.id[:12]}, fresh")
    else:
        why = "; ".join(found.changed) or "it did not pass"
        out.print(f"receipt: {found.receipt.id[:12]}, not valid: {why}", markup=False)


def _coloured(word: str) -> Text:
    return Text(word, COLOURS.get(word, ""))
