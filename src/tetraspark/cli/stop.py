"""`tetraspark stop`: end the line's processes, those and no others."""

from dataclasses import asdict

from tetraspark.cli.line import DEFAULT_SITE, DryRun, Json, SitePath, open_line
from tetraspark.cli.output import err, out, print_json
from tetraspark.fleet.runner import Stopped
from tetraspark.line.stop import stop as stop_line


def stop(site: SitePath = DEFAULT_SITE, dry_run: DryRun = False, json: Json = False) -> None:
    """End every process of the line, also those of a start that was cut off."""
    line = open_line(site)
    if dry_run:
        pids = line.runner.live(line.store.root)
        if json:
            print_json({"would_end": pids})
        else:
            out.print(f"would end {len(pids)} processes: {' '.join(map(str, pids))}".rstrip(": "))
        return
    grace = line.loaded.site.deadlines.stop_seconds
    with err.status(f"stopping, at most {grace} s before processes are killed"):
        stopped = stop_line(line.runner, line.store, grace)
    if json:
        print_json(asdict(stopped))
    else:
        out.print(f"line {line.loaded.site.name}: {_told(stopped)}")


def _told(stopped: Stopped) -> str:
    if stopped.asked or stopped.killed:
        text = f"stopped {len(stopped.asked)} ranks"
        text += f", {len(stopped.killed)} processes had to be killed" if stopped.killed else ""
    else:
        text = "nothing was running"
    files = len(stopped.removed)
    return text + (f"; removed {files} files it left in /dev/shm" if files else "")
