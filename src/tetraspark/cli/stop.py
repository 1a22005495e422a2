"""`tetraspark stop`: end the line's processes, those and no others."""

from dataclasses import asdict
from typing import Annotated

import typer

from tetraspark.cli.line import DEFAULT_SITE, DryRun, Json, SitePath, open_line
from tetraspark.cli.output import err, out, print_json
from tetraspark.errors import Problem, UsageError
from tetraspark.fleet.local import LocalRunner
from tetraspark.fleet.runner import Runner, Stopped
from tetraspark.line.run import RunStore
from tetraspark.line.stop import stop as stop_line
from tetraspark.site.serving import Deadlines


def stop(
    site: SitePath = DEFAULT_SITE,
    line: Annotated[
        str | None, typer.Option("--line", help="Name of the line, when its site is no use.")
    ] = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """End every process of the line, also those of a start that was cut off."""
    if line is None:
        opened = open_line(site)
        name, grace = opened.loaded.site.name, opened.loaded.site.deadlines.stop_seconds
    else:
        name, grace = _known(line), Deadlines().stop_seconds
    runner, store = LocalRunner(), RunStore(name)
    if dry_run:
        _print_would(runner.live(store.root), json)
    else:
        _stop(name, runner, store, grace, json)


def _known(name: str) -> str:
    store = RunStore(name)
    if not name or "/" in name or not store.root.is_dir():
        served = sorted(folder.name for folder in store.root.parent.glob("*") if folder.is_dir())
        wanted = f"one of: {', '.join(served)}" if served else "a line that was served"
        raise UsageError(Problem("--line", f"no line {name!r}", wanted))
    return name


def _print_would(pids: tuple[int, ...], json: bool) -> None:
    if json:
        print_json({"would_end": pids})
    else:
        out.print(f"would end {len(pids)} processes: {' '.join(map(str, pids))}".rstrip(": "))


def _stop(name: str, runner: Runner, store: RunStore, grace: float, json: bool) -> None:
    with err.status(f"stopping, at most {grace:.0f} s before processes are killed"):
        stopped = stop_line(runner, store, grace)
    if json:
        print_json(asdict(stopped))
    else:
        out.print(f"line {name}: {_told(stopped)}")


def _told(stopped: Stopped) -> str:
    if stopped.asked or stopped.killed:
        text = f"stopped {len(stopped.asked)} ranks"
        text += f", {len(stopped.killed)} processes had to be killed" if stopped.killed else ""
    else:
        text = "nothing was running"
    files = len(stopped.removed)
    return text + (f"; removed {files} files it left in /dev/shm" if files else "")
