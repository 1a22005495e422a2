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
    open_runner,
    store_of,
)
from tetraspark.cli.output import err, out, print_json, print_problems
from tetraspark.fleet.runner import Present, Runner, Stopped
from tetraspark.line.run import RunStore
from tetraspark.line.stop import stop as stop_line
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
        last = store.latest()
        assert last is not None, "a line has a name by its runs"
        plan = last.plan()
        limits = Deadlines(**(FLEET_DEADLINES if plan["kind"] == "fleet" else {}))
        with open_runner(plan) as runner:
            _act(line, runner, store, limits.stop_seconds, dry_run, json)
        return
    with open_line(site) as opened:
        grace = opened.loaded.site.deadlines.stop_seconds
        _act(opened.loaded.site.name, opened.runner, opened.store, grace, dry_run, json)


def _act(
    name: str, runner: Runner, store: RunStore, grace: float, dry_run: bool, json: bool
) -> None:
    if dry_run:
        _print_would(runner.present(store.root), runner.unit, json)
        return
    WatchProcess(store.root).end()
    with err.status(f"stopping, at most {grace:.0f} s before {runner.unit} are killed"):
        stopped = stop_line(runner, store, grace)
    if json:
        print_json(asdict(stopped))
    else:
        out.print(f"line {name}: {_told(stopped, runner.unit)}")
    if stopped.unverified:
        print_problems(stopped.unverified)
        raise typer.Exit(1)


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
        text = "nothing was running"
    what = "files it left in /dev/shm" if unit == "processes" else unit
    return text + (f"; removed {len(stopped.removed)} {what}" if stopped.removed else "")
