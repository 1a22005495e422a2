"""`tetraspark weights`: where the checkpoint is, its hashes, copies, NFS, the page cache."""

from pathlib import Path
from typing import Annotated

import typer

from tetraspark.cli.line import DEFAULT_SITE, DryRun, Json, SitePath
from tetraspark.cli.output import print_json, print_problems
from tetraspark.cli.weights_fleet import NodeNames, end, opened
from tetraspark.cli.weights_share import share
from tetraspark.cli.weights_view import (
    print_copy_plan,
    print_copy_report,
    print_evicted,
    print_status,
    print_verification,
)
from tetraspark.weights.compare import Reference
from tetraspark.weights.copy import copy_weights
from tetraspark.weights.copy_plan import plan_copy
from tetraspark.weights.each_node import parted
from tetraspark.weights.evict import evict as evict_on
from tetraspark.weights.place import chosen
from tetraspark.weights.receipt import read_receipt
from tetraspark.weights.status import read_status
from tetraspark.weights.sums_file import read_sums
from tetraspark.weights.verify import Wish
from tetraspark.weights.verify import verify as verify_on

weights = typer.Typer(help="The checkpoint on the nodes of a fleet.", no_args_is_help=True)
weights.command()(share)


@weights.callback()
def main() -> None:
    """The checkpoint on the nodes of a fleet."""


@weights.command()
def status(site: SitePath = DEFAULT_SITE, json: Json = False) -> None:
    """Show where the weights are on each node, and what is missing; reads names and sizes."""
    with opened(site) as fleet:
        receipt = read_receipt(fleet.receipt)
        found = read_status(
            fleet.loaded.site, fleet.place, fleet.runner, receipt, fleet.view.observe
        )
    nodes, problems = parted(found)
    ok = not problems and all(one.ok for one in nodes.values())
    if json:
        rows = [one.as_dict() for one in nodes.values()]
        told = [problem.as_dict() for problem in problems]
        print_json({"ok": ok, "mode": fleet.place.mode, "nodes": rows, "problems": told})
    else:
        print_status(fleet.place, found)
        print_problems(problems)
    end(ok)


@weights.command()
def verify(
    site: SitePath = DEFAULT_SITE,
    node: NodeNames = None,
    full: Annotated[bool, typer.Option("--full", help="Hash again what was hashed.")] = False,
    sums: Annotated[
        Path | None, typer.Option("--sums", help="Compare with this file of sha256sum, too.")
    ] = None,
    renew: Annotated[
        bool, typer.Option("--renew", help="Forget the receipt: the checkpoint is another one.")
    ] = False,
    json: Json = False,
) -> None:
    """Hash every file on every node that has the folder, and compare."""
    reference = None if sums is None else Reference(str(sums), read_sums(sums))
    with opened(site) as fleet:
        nodes = chosen(fleet.place.holders, node, "that have the folder themselves")
        wish = Wish(full, reference, renew)
        found = verify_on(fleet.place, fleet.runner, fleet.receipt, fleet.view.observe, wish, nodes)
    print_json(found.as_dict()) if json else print_verification(found, fleet.receipt)
    end(found.ok)


@weights.command()
def copy(
    site: SitePath = DEFAULT_SITE,
    node: NodeNames = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Copy the checkpoint from the head to the workers, and compare the hashes."""
    with opened(site) as fleet:
        workers = chosen(fleet.place.nodes[1:], node, "that are workers")
        observe = fleet.view.observe
        plan = plan_copy(fleet.loaded, fleet.place, fleet.runner, workers, observe)
        if not dry_run:
            report = copy_weights(plan, fleet.runner, fleet.receipt, observe)
    if dry_run:
        print_json(plan.as_dict()) if json else print_copy_plan(plan)
        end(not plan.problems)
        return
    print_json(report.as_dict()) if json else print_copy_report(report)
    end(not report.problems)


@weights.command()
def evict(site: SitePath = DEFAULT_SITE, node: NodeNames = None, json: Json = False) -> None:
    """Give the page cache of the checkpoint's files back; nothing is lost, and no root needed."""
    with opened(site) as fleet:
        nodes = chosen(fleet.place.holders, node, "that have the folder themselves")
        found = evict_on(fleet.place.path, fleet.runner, nodes, fleet.view.observe)
    evicted, problems = parted(found)
    if json:
        rows = [one.as_dict() for one in evicted.values()]
        told = [problem.as_dict() for problem in problems]
        print_json({"ok": not problems, "nodes": rows, "problems": told})
    else:
        print_evicted(evicted.values())
        print_problems(problems)
    end(not problems)
