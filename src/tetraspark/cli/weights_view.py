"""How the weights of a fleet look: status, verification, copies and eviction as tables."""

import shlex
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from rich.table import Table
from rich.text import Text

from tetraspark.cli.output import out, print_problems
from tetraspark.cli.weights_progress import size_text
from tetraspark.doctor.check import Check
from tetraspark.errors import RunError
from tetraspark.weights.copy import CopyReport
from tetraspark.weights.copy_plan import CopyPlan, Transfer
from tetraspark.weights.evict import Evicted
from tetraspark.weights.place import Place
from tetraspark.weights.status import NodeWeights
from tetraspark.weights.tally import tree_sha256
from tetraspark.weights.verify import Verification
from tetraspark.weights.worker_copy import Copied

COLOURS = {"ok": "green", "warning": "yellow", "unknown": "yellow", "failed": "red"}


def print_status(place: Place, found: Mapping[str, NodeWeights | RunError]) -> None:
    """Print a row a node, then every check that is not ok."""
    out.print(f"line {place.line}, model.path {place.path}, mode {place.mode}", markup=False)
    table = Table("node", "where", "files", "size", "on", "verified", box=None, pad_edge=False)
    checks: list[Check] = []
    for node, one in found.items():
        if isinstance(one, RunError):
            table.add_row(node, "unreachable", "", "", "", "")
            continue
        checks += one.checks
        if not one.holder and one.volume is not None:
            mounted = f"{one.volume.server}:{one.volume.path}"
            table.add_row(one.node, f"volume {one.volume.name}", "", "", Text(mounted), "")
            continue
        files = f"{one.present} of {one.total}"
        on = f"{one.mount.source} ({one.mount.kind})" if one.mount else ""
        row = (one.folder, files, size_text(one.bytes), on, _verified(one))
        table.add_row(one.node, *map(Text, row))
    out.print(table)
    print_checks(check for check in checks if check.verdict != "ok")


def _verified(one: NodeWeights) -> str:
    if one.verified is None:
        return "never"
    when = datetime.fromtimestamp(one.verified, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"{when}, changed since" if one.changed else f"{when}, {(one.tree or '')[:12]}"


def print_checks(checks: Iterable[Check]) -> None:
    """Print checks, each with what is to be done."""
    for check in checks:
        print_problems([check.problem], check.verdict, COLOURS[check.verdict])


def print_verification(found: Verification, receipt: Path) -> None:
    """Print a row a node, then every difference."""
    table = Table("node", "folder", "files", "size", "hashed now", "tree", box=None, pad_edge=False)
    for node, tally in found.tallies.items():
        size = size_text(sum(one.size for one in tally.files.values()))
        counts = (str(len(tally.files)), size, str(len(tally.files) - tally.cached))
        table.add_row(node, Text(tally.folder), *counts, tree_sha256(tally.sums)[:12])
    out.print(table)
    for node, names in found.extra.items():
        out.print(f"{node}: not in the reference, and left alone: {', '.join(names)}", markup=False)
    print_problems(found.problems)
    if found.ok:
        kept = f"; receipt {receipt}" if found.recorded else "; no receipt, without the head"
        out.print(f"every file as in {found.reference}{kept}", markup=False)


def print_copy_plan(plan: CopyPlan) -> None:
    """Print what a copy would send to each worker, and the command."""
    size = sum(one.size for one in plan.source.files.values())
    head = f"{plan.source.node} {plan.source.folder}"
    out.print(f"from {head}: {len(plan.source.files)} files, {size_text(size)}", markup=False)
    for one in plan.transfers.values():
        if not isinstance(one, Transfer):
            continue
        lacks = f"{len(one.names)} files to send, {size_text(one.bytes - one.kept)}"
        kept = f", {size_text(one.kept)} of them there from before" if one.kept else ""
        same = f"; {len(one.same)} of the right size, to hash" if one.same else ""
        room = f"; {size_text(one.free)} free"
        out.print(f"# {one.node} {one.folder}: {lacks}{kept}{same}{room}", markup=False)
        if one.names:
            names = f"{', '.join(one.names[:3])}{', …' if len(one.names) > 3 else ''}"
            out.print(f"# on {one.route.head}, with the names as stdin: {names}", markup=False)
            out.print(shlex.join(one.rsync), markup=False)
    print_problems(plan.problems)


def print_copy_report(report: CopyReport) -> None:
    """Print what was sent where, then what is wrong."""
    table = Table("node", "folder", "sent", "size", "seconds", "tree", box=None, pad_edge=False)
    for one in report.outcomes.values():
        if isinstance(one, Copied):
            cells = (str(len(one.sent)), size_text(one.bytes), f"{one.seconds:.1f}", one.tree[:12])
            table.add_row(one.node, Text(one.folder), *cells)
    if table.row_count:
        out.print(table)
    for one in report.outcomes.values():
        if isinstance(one, Copied) and one.replaced:
            names = ", ".join(one.replaced)
            out.print(f"{one.node}: had other bytes, now the head's: {names}", markup=False)
    print_problems(report.problems)


def print_evicted(nodes: Iterable[Evicted]) -> None:
    """Print what was free before and after."""
    columns = ("node", "folder", "files", "size", "MemFree before", "after", "MemAvailable after")
    table = Table(*columns, box=None, pad_edge=False)
    for one in nodes:
        memory = (one.before["MemFree"], one.after["MemFree"], one.after["MemAvailable"])
        sizes = map(size_text, (one.bytes, *memory))
        table.add_row(one.node, Text(one.folder), str(one.files), *sizes)
    out.print(table)
