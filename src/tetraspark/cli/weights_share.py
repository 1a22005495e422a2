"""`tetraspark weights share`: the NFS server, and the docker volumes of the workers."""

from collections.abc import Sequence
from typing import Annotated

import typer

from tetraspark.cli.line import DEFAULT_SITE, DryRun, Json, SitePath
from tetraspark.cli.output import err, out, print_json, print_problems, shown
from tetraspark.cli.weights_fleet import end, opened
from tetraspark.cli.weights_view import print_checks
from tetraspark.errors import Problem, UsageError
from tetraspark.site.load import LoadedSite
from tetraspark.weights.place import Place
from tetraspark.weights.share import Shared, apply, look
from tetraspark.weights.share import share as share_on
from tetraspark.weights.share_plan import SharePlan, Step, removal, share_plan


def share(
    site: SitePath = DEFAULT_SITE,
    applied: Annotated[
        bool, typer.Option("--apply", help="Do the steps; on the server as root, with sudo.")
    ] = False,
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove the docker volumes made for this line.")
    ] = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Print what NFS needs on the server and on each worker; with --apply, do it."""
    if applied and (dry_run or remove):
        other = "--dry-run" if dry_run else "--remove"
        wanted = "one of the two: --apply makes what is missing"
        raise UsageError(Problem(other, "given with --apply", wanted, "leave one out"))
    with opened(site) as fleet:
        loaded, place, runner, observe = fleet.loaded, fleet.place, fleet.runner, fleet.view.observe
        if not remove:
            _require_nfs(loaded, place)
        found = look(loaded.site, place, runner, observe)
        if remove:
            plan, steps = None, removal(loaded.site, place, found)
            done = None if dry_run else apply(steps, runner, observe)
        else:
            plan, steps = share_plan(loaded.site, place, found), ()
            goes = applied and plan.ok
            done = share_on(loaded.site, place, plan, runner, observe) if goes else None
    if done is not None:
        print_json(done.as_dict()) if json else _print_shared(done)
        end(done.ok)
    elif plan is not None:
        print_json(plan.as_dict()) if json else _print_share_plan(plan, applied)
        end(plan.ok)
    else:
        told = [step.as_dict() for step in steps]
        print_json({"ok": True, "steps": told}) if json else _print_steps(steps)


def _require_nfs(loaded: LoadedSite, place: Place) -> None:
    if place.mode != "nfs":
        where = loaded.origin("weights.mode").where
        seen = f'weights.mode = "{place.mode}"'
        fix = 'set mode = "nfs" and nfs_server; --remove removes volumes of an earlier mode'
        raise UsageError(Problem(where, seen, 'mode = "nfs" for `weights share`', fix))


def _print_share_plan(plan: SharePlan, refused: bool) -> None:
    """Print the steps for each machine, and what was found to be wrong."""
    export = plan.export
    if not plan.by_head:
        out.print(f"# on the server, as root: export {export.path}", markup=False)
        out.print(f"# {export.file}\n{export.text.strip()}", markup=False)
        out.print("exportfs -ra", markup=False)
    _print_steps(plan.steps)
    print_checks(check for check in plan.checks if check.verdict != "ok")
    if refused:
        err.print("nothing was done: correct what is listed first")


def _print_steps(steps: Sequence[Step]) -> None:
    """Print steps as commands, each below the node that it runs on."""
    for step in steps:
        undo = f"; undo: {step.undo}" if step.undo else ""
        out.print(f"# on {step.node}{undo}", markup=False)
        out.print(step.shown, markup=False)
    if not steps:
        out.print("nothing is left to do", markup=False)


def _print_shared(done: Shared) -> None:
    """Print what was done, how to undo it, and what containers read."""
    _print_steps(done.done)
    for check in done.checks:
        out.print(f"{check.node}: {check.verdict}, {shown(check.observed)}", markup=False)
    print_checks(check for check in done.checks if check.verdict != "ok")
    print_problems(done.problems)
