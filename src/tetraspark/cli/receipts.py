"""`tetraspark receipts`: every line that became ready, and what changed between two of them."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from tetraspark.cli.line import DEFAULT_SITE, Json, LineName, SitePath
from tetraspark.cli.named_line import store_of
from tetraspark.cli.output import out, print_json, print_problems, shown
from tetraspark.errors import Problem, UsageError
from tetraspark.fleet.meminfo import GIB
from tetraspark.receipts.changes import Change, changes
from tetraspark.receipts.receipt import ServedNode, ServeReceipt
from tetraspark.receipts.store import ReceiptStore

receipts = typer.Typer(help="Receipts of lines that became ready.", no_args_is_help=True)
UNSEEN = "not seen"


@receipts.callback()
def main() -> None:
    """Receipts of lines that became ready."""


@receipts.command("list")
def list_(site: SitePath = DEFAULT_SITE, line: LineName = None, json: Json = False) -> None:
    """List the receipts of a line, oldest first."""
    store = _store(site, line)
    found, damaged = _readable(store)
    if json:
        print_json([_row(one) for one in found])
    else:
        table = Table("receipt", "served", "site", "image", "tetraspark", "kernel", "", box=None)
        for one in found:
            table.add_row(*map(_plain, _row(one).values()))
        out.print(table)
    print_problems(damaged, "warning", "yellow")


@receipts.command()
def show(
    receipt: Annotated[
        str | None, typer.Argument(help="Id of a receipt, or its beginning; the newest if absent.")
    ] = None,
    site: SitePath = DEFAULT_SITE,
    line: LineName = None,
    site_text: Annotated[
        bool, typer.Option("--site-text", help="Print the text of its site file, and no more.")
    ] = False,
    json: Json = False,
) -> None:
    """Show what a receipt recorded."""
    store = _store(site, line)
    found = store.read(_newest(store) if receipt is None else store.find(receipt))
    if site_text:
        sys.stdout.write(found.site_text)
    elif json:
        print_json(found.model_dump(mode="json"))
    else:
        _print(found)


@receipts.command()
def diff(
    a: Annotated[
        str | None, typer.Argument(help="The earlier one; the one before B if absent.")
    ] = None,
    b: Annotated[str | None, typer.Argument(help="The later one; the newest if absent.")] = None,
    site: SitePath = DEFAULT_SITE,
    line: LineName = None,
    json: Json = False,
) -> None:
    """Say what changed between two receipts."""
    store = _store(site, line)
    later = _newest(store) if b is None else store.find(b)
    earlier = _before(store, later) if a is None else store.find(a)
    found = changes(store.read(earlier), store.read(later))
    if json:
        told = [one.as_dict() for one in found]
        print_json({"before": earlier, "after": later, "changes": told})
    else:
        _print_changes(earlier, later, found)


def _store(site: Path, line: str | None) -> ReceiptStore:
    return ReceiptStore(store_of(site, line).root)


def _newest(store: ReceiptStore) -> str:
    ids = store.ids()
    if ids:
        return ids[-1]
    fix = "tetraspark serve leaves one of every line that becomes ready"
    raise UsageError(Problem(str(store.folder), "no receipt", "one at least", fix))


def _before(store: ReceiptStore, id: str) -> str:
    earlier = [one for one in store.ids() if one < id]
    if earlier:
        return earlier[-1]
    fix = "tetraspark receipts list"
    raise UsageError(Problem(str(store.folder), f"{id} is the first one", "two receipts", fix))


def _readable(store: ReceiptStore) -> tuple[list[ServeReceipt], list[Problem]]:
    """Return the receipts, and what is wrong with those that cannot be read."""
    found: list[ServeReceipt] = []
    damaged: list[Problem] = []
    for id in store.ids():
        try:
            found.append(store.read(id))
        except UsageError as error:
            damaged += error.problems
    return found, damaged


def _row(one: ServeReceipt) -> dict[str, str]:
    images = {node.image.id[7:19] for node in one.nodes if node.image}
    kernels = {node.kernel for node in one.nodes if node.kernel}
    return {
        "receipt": one.id,
        "served": one.at,
        "site": one.site_sha256[:12],
        "image": ", ".join(sorted(images)),
        "tetraspark": f"{one.tetraspark} at {one.revision[:12]}",
        "kernel": ", ".join(sorted(kernels)),
        "note": f"rollback to {one.rollback_of}" if one.rollback_of else "",
    }


def _print(one: ServeReceipt) -> None:
    out.print(f"receipt {one.id} of line {one.line}, served {one.at}", markup=False)
    out.print(f"site {one.site}, SHA-256 {one.site_sha256}", markup=False)
    out.print(f"tetraspark {one.tetraspark} at {one.revision}, engine {one.plan['engine']}")
    table = Table("node", "kernel", "driver", "idle memory", "image", "checkpoint", box=None)
    for node in one.nodes:
        table.add_row(*map(_plain, (node.node, *_cells(node))))
    out.print(table)
    out.print(f"collectives: {one.plan.get('transport', 'not told')}", markup=False)
    same = sum(bool(value["same"]) for value in one.effective)
    out.print(f"engine: {same} of {len(one.effective)} values in /server_info as planned")
    if one.tolerated:
        out.print(f"started despite: {', '.join(one.tolerated)}", markup=False)
    if one.rollback_of:
        out.print(f"a rollback to {one.rollback_of}", markup=False)
    proof = one.proof
    seconds = sum(proof.seconds.values())
    told = f"asked {shown(proof.prompt)!r}, answered {shown(proof.answer)!r}, {seconds:.0f} s"
    out.print(f"proof: {told}", markup=False)


def _cells(node: ServedNode) -> tuple[str, ...]:
    if node.error:
        return (f"not reached: {node.error}",)
    idle = UNSEEN if node.idle_bytes is None else f"{node.idle_bytes / GIB:.1f} GiB"
    image = f"{node.image.tag} {node.image.id[7:19]}" if node.image else ""
    model = f"{node.model.files} files {node.model.sha256[:12]}" if node.model else ""
    return (node.kernel or UNSEEN, node.driver or UNSEEN, idle, image, model)


def _print_changes(earlier: str, later: str, found: list[Change]) -> None:
    out.print(f"from {earlier} to {later}: {len(found)} changes", markup=False)
    if not found:
        return
    table = Table("what", "where", "before", "after", "", box=None)
    for one in found:
        cells = (one.what, one.where, one.before, one.after, one.note)
        table.add_row(*map(_plain, cells))
    out.print(table)


def _plain(text: str) -> Text:
    """Return text of a receipt as it stands there, folded where it is long."""
    return Text(shown(text), overflow="fold")
