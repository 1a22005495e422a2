"""`tetraspark logs`: what the ranks print."""

import json as jsonlib
import sys
import time
from collections.abc import Iterable
from typing import Annotated

import typer

from tetraspark.cli.line import DEFAULT_SITE, OpenLine, SitePath, open_line
from tetraspark.cli.output import print_problems, shown
from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.fleet.run_files import logged_ranks
from tetraspark.line.engine_log import Line
from tetraspark.line.log_tail import LogTail
from tetraspark.line.run import Run


def logs(
    rank: Annotated[int | None, typer.Argument(help="One rank; all of them by default.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as they grow.")] = False,
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=0, max=1_000_000, help="Last lines a rank.")
    ] = 50,
    site: SitePath = DEFAULT_SITE,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
) -> None:
    """Print the last log lines of one rank or of all."""
    with open_line(site) as line:
        _logs(line, rank, follow, lines, json)


def _logs(line: OpenLine, rank: int | None, follow: bool, lines: int, json: bool) -> None:
    run = line.latest()
    try:
        nodes = [command["node"] for command in run.plan()["ranks"]]
    except RunError as error:
        print_problems(error.problems, "warning", "yellow")
        nodes = []  # What has been copied by now is there all the same.
    ranks = len(nodes) or logged_ranks(run.folder)
    if rank is not None and not 0 <= rank < ranks:
        raise UsageError(
            Problem("logs", f"rank {rank}", f"a rank from 0 to {ranks - 1}", "tetraspark logs 0")
        )
    wanted = range(ranks) if rank is None else [rank]
    if nodes:
        _bring_up_to_date(line, run, nodes)
    tail = LogTail(run.folder, ranks)
    for one in wanted:
        _print(tail.skip_to_last(one, lines), rank is None, json)
    while follow:
        time.sleep(line.runner.poll_seconds)
        if nodes:
            line.runner.inspect(run.folder, nodes)
        _print((entry for entry in tail.read() if entry.rank in wanted), rank is None, json)


def _bring_up_to_date(line: OpenLine, run: Run, nodes: list[str]) -> None:
    """Get what the ranks have printed by now; a node that is not reached is told."""
    states = line.runner.inspect(run.folder, nodes)
    print_problems([one.problem for one in states if one.problem], "warning", "yellow")


def _print(entries: Iterable[Line], name_rank: bool, json: bool) -> None:
    for entry in entries:
        if json:
            text = jsonlib.dumps({"rank": entry.rank, "time": entry.time, "text": entry.text})
        else:
            text = f"rank {entry.rank} | {entry.text}" if name_rank else entry.text
        sys.stdout.write((text if json else shown(text)) + "\n")
    sys.stdout.flush()
