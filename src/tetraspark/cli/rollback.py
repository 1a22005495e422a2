"""`tetraspark rollback`: serve again what the last good receipt recorded."""

from functools import partial
from typing import Annotated

import typer

from tetraspark.cli.line import (
    DEFAULT_SITE,
    DryRun,
    Json,
    LineName,
    OpenLine,
    SitePath,
    open_loaded,
)
from tetraspark.cli.named_line import store_of
from tetraspark.cli.output import err, out, print_json
from tetraspark.cli.plan import print_plan
from tetraspark.cli.serve import fleet_start, print_served, start_line
from tetraspark.fleet.this_machine import ThisMachine
from tetraspark.line.fleet_launch import launch_of
from tetraspark.line.make_plan import make_plan
from tetraspark.line.plan import Plan
from tetraspark.receipts.receipt import ServeReceipt
from tetraspark.receipts.rollback import (
    give_names,
    keep_it,
    recorded_site,
    require_same_plan,
    require_there,
    tags,
    target,
    with_image,
)
from tetraspark.receipts.store import ReceiptStore
from tetraspark.site.load import LoadedSite


def rollback(
    site: SitePath = DEFAULT_SITE,
    line: LineName = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="RECEIPT", help="Go back to this one: its id or beginning."),
    ] = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Serve again what the last good receipt recorded: site, image on every node, plan.

    What runs is ended only when all of it is there still; the site file is left as it is.
    """
    runs = store_of(site, line)
    store, last = ReceiptStore(runs.root), runs.latest()
    receipt = target(store, last.id if last else None, to)
    recorded = recorded_site(receipt, store.path(receipt.id))
    with open_loaded(with_image(recorded, receipt)) as opened:
        with err.status("looking for what the receipt recorded"):
            require_there(receipt, recorded, opened.nodes or ThisMachine())
        if dry_run:
            _print_would(receipt, _planned(opened, receipt), json)
        else:
            _serve(opened, receipt, recorded, json)


def _planned(opened: OpenLine, receipt: ServeReceipt) -> Plan:
    """Return the plan, without what a launch warns of: its image has no name yet."""
    launch = None if opened.nodes is None else launch_of(opened.loaded, opened.nodes)
    planned = make_plan(opened.loaded, launch)
    require_same_plan(receipt, planned)
    return planned


def _serve(opened: OpenLine, receipt: ServeReceipt, recorded: LoadedSite, json: bool) -> None:
    start = fleet_start(opened, list(receipt.tolerated))
    if opened.nodes is not None:
        give_names(tags(receipt), opened.nodes)
    served = start_line(opened, True, start, receipt.id, partial(require_same_plan, receipt))
    commands = keep_it(receipt, recorded)
    if json:
        told = {"receipt": receipt.id, "keep_it": commands}
        print_json({**served.as_dict(), **told})
        return
    print_served(served, opened.loaded.site.model.canary.prompt, receipt.site)
    out.print(f"  as in:    receipt {receipt.id}, served {receipt.at}", markup=False)
    out.print("  the site file is as it was; what keeps this at the next serve:", markup=False)
    for command in commands:
        out.print(f"    {command}", markup=False)


def _print_would(receipt: ServeReceipt, planned: Plan, json: bool) -> None:
    names = tags(receipt)
    if json:
        told = [{"node": one.node, "argv": one.argv} for one in names]
        print_json({"receipt": receipt.id, "first": told, "plan": planned.as_dict()})
        return
    out.print(f"would serve receipt {receipt.id} of {receipt.at} again", markup=False)
    for one in names:
        out.print(f"first, on {one.node}: {' '.join(one.argv)}", markup=False)
    print_plan(planned)
