"""`tetraspark logs`: what the ranks print."""

import json as jsonlib
import sys
import time
from typing import Annotated

import typer

from tetraspark.cli.line import DEFAULT_SITE, Json, SitePath, open_line
from tetraspark.errors import Problem, UsageError
from tetraspark.line.engine_log import Line
from tetraspark.line.log_tail import LogTail


def logs(
    rank: Annotated[int | None, typer.Argument(help="One rank; all of them by default.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as they grow.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="Last lines a rank.")] = 50,
    site: SitePath = DEFAULT_SITE,
    json: Json = False,
) -> None:
    """Print the last log lines of one rank or of all."""
    line = open_line(site)
    run = line.store.latest()
    if run is None:
        raise UsageError(
            Problem(
                f"line {line.loaded.site.name}",
                "never served",
                "a run with logs",
                f"tetraspark serve --site {site}",
            )
        )
    ranks = len(run.plan()["ranks"])
    if rank is not None and not 0 <= rank < ranks:
        raise UsageError(
            Problem("logs", f"rank {rank}", f"a rank from 0 to {ranks - 1}", "tetraspark logs 0")
        )
    wanted = range(ranks) if rank is None else [rank]
    tail = LogTail(line.runner, run.folder, ranks)
    fresh = tail.read()
    for one in wanted:
        mine = [entry for entry in fresh if entry.rank == one]
        _print(mine[len(mine) - min(lines, len(mine)) :], rank is None, json)
    while follow:
        time.sleep(0.3)
        _print([entry for entry in tail.read() if entry.rank in wanted], rank is None, json)


def _print(entries: list[Line], name_rank: bool, json: bool) -> None:
    for entry in entries:
        if json:
            text = jsonlib.dumps({"rank": entry.rank, "time": entry.time, "text": entry.text})
        else:
            text = f"rank {entry.rank} | {entry.text}" if name_rank else entry.text
        sys.stdout.write(text + "\n")
    sys.stdout.flush()
