"""`tetraspark stop`: end the line's ranks, those and no others."""

from dataclasses import asdict

import typer

from tetraspark.cli.line import (
    DEFAULT_SITE,
    DryRun,
    Json,
    LineName,
    SitePath,
    open_line,
)
from tetraspark.cli.named_line import open_runner, reached_by, store_of, told_plan
from tetraspark.cli.output import err, out, print_json, print_problems
from tetraspark.errors import Problem
from tetraspark.fleet.container import LINE
from tetraspark.fleet.runner import Present, Runner, Stopped
from tetraspark.line.run import RunStore
from tetraspark.line.stop import stop_line
from tetraspark.site.serving import FLEET_DEADLINES, Deadlines
from tetraspark.watch.process import WatchProcess


def stop(
    site: SitePath = DEFAULT_SITE,
    line: LineName = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """End every rank of the line, also those of a start that was cut off."""
    if line is not None:
        store = store_of(site, line)
        plan = reached_by(store)
        limits = Deadlines(**(FLEET_DEADLINES if plan and plan["kind"] == "fleet" else {}))
        with open_runner(plan) as runner:
            found = _act(line, runner, store, limits.stop_seconds, dry_run, json)
        if plan is None and not found:
            print_problems([_nodes_unknown(line)])
            raise typer.Exit(1)
        return
    with open_line(site) as opened:
        if opened.store.latest() is not None:
            told_plan(opened.store)
        grace = opened.loaded.site.deadlines.stop_seconds
        _act(opened.loaded.site.name, opened.runner, opened.store, grace, dry_run, json)


def _act(
    name: str, runner: Runner, store: RunStore, grace: float, dry_run: bool, json: bool
) -> bool:
    """Stop the line, or say what would be; return whether there was something of it."""
    if dry_run:
        there = runner.present(store.root)
        _print_would(there, runner.unit, json)
        return bool(there.parts)
    WatchProcess(store.root).end()
    with err.status(f"stopping, at most {grace:.0f} s before {runner.unit} are killed"):
        stopped = stop_line(runner, store, grace)
    print_problems(stopped.warnings, "warning", "yellow")
    if json:
        print_json(asdict(stopped))
    else:
        out.print(f"line {name}: {_told(stopped, runner.unit)}")
    if stopped.unverified:
        print_problems(stopped.unverified)
        raise typer.Exit(1)
    return bool(stopped.asked or stopped.killed)


def _nodes_unknown(line: str) -> Problem:
    """Say that a line without a readable plan may have been a fleet's."""
    seen = "no plan of it can be read, and no process of it is on this machine"
    wanted = "the nodes that may have containers of it"
    ask = f"docker ps --all --filter label={LINE}={line}"
    fix = f"tetraspark stop --site SITE, with its site file; or on each node: {ask}"
    return Problem(f"line {line}", seen, wanted, fix)


def _print_would(there: Present, unit: str, json: bool) -> None:
    names = [part.name for part in there.parts]
    if json:
        print_json({"would_end": names, "unseen": [one.as_dict() for one in there.unseen]})
    else:
        listed = f": {', '.join(names)}" if names else ""
        told = [f"would end {len(names)} {unit}{listed}"] if names or not there.unseen else []
        if count := len(there.unseen):
            silent = "1 node" if count == 1 else f"{count} nodes"
            told.append(f"not known what would be ended on {silent} without an answer")
        out.print("; ".join(told), markup=False)
    if there.unseen:
        print_problems(there.unseen)
        raise typer.Exit(1)


def _told(stopped: Stopped, unit: str) -> str:
    if stopped.asked or stopped.killed:
        text = f"stopped {len(stopped.asked)} ranks"
        text += f", {len(stopped.killed)} {unit} had to be killed" if stopped.killed else ""
    else:
        text = "ended a start that was under way" if stopped.start else "nothing was running"
    what = "files it left in /dev/shm" if unit == "processes" else unit
    return text + (f"; removed {len(stopped.removed)} {what}" if stopped.removed else "")
