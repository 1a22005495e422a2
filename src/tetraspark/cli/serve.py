"""`tetraspark serve`: start the line, return when it has proven that it serves."""

import os
from collections.abc import Callable
from dataclasses import replace as replace_fields
from typing import Annotated

import typer
from rich.markup import escape
from rich.status import Status as Spinner

from tetraspark.cli.line import DEFAULT_SITE, DryRun, Json, OpenLine, SitePath, open_line
from tetraspark.cli.output import err, out, print_json, print_problems, shown
from tetraspark.cli.plan import print_plan
from tetraspark.doctor.choice import listed
from tetraspark.errors import Problem, UsageError
from tetraspark.line.fleet_preflight import DESPITE
from tetraspark.line.fleet_start import FleetStart
from tetraspark.line.make_plan import make_plan
from tetraspark.line.progress import Progress
from tetraspark.line.serve import Served
from tetraspark.line.serve import serve as serve_line
from tetraspark.watch.process import WatchProcess
from tetraspark.watch.record import STARTED_BY_WATCH, Record

NEWS_SECONDS = 10


def serve(
    site: SitePath = DEFAULT_SITE,
    replace: Annotated[
        bool, typer.Option("--replace", help="End what this line is serving now, then start.")
    ] = False,
    despite: Annotated[
        list[str] | None,
        typer.Option(
            "--despite",
            metavar="ID",
            help="Start though these checks of the doctor fail: ID or its beginning, with commas.",
        ),
    ] = None,
    without_transport: Annotated[
        bool,
        typer.Option("--without-transport", help="Leave all collectives to the engine this time."),
    ] = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Start every rank, wait for the proof that the line serves, and leave it running."""
    with open_line(site) as opened:
        line = _without_transport(opened) if without_transport else opened
        start = _fleet_start(line, listed(despite or ()))
        if dry_run:
            planned = make_plan(line.loaded, line.launch())
            print_json(planned.as_dict()) if json else print_plan(planned)
            return
        try:
            served = _serve(line, replace, start)
        except KeyboardInterrupt:
            err.print("interrupted: every rank of this start has been stopped")
            raise typer.Exit(130) from None
        _watched_from_now(line, served)
        if json:
            print_json(served.as_dict())
        else:
            _print_served(served, line.loaded.site.model.canary.prompt, str(site))


def _without_transport(line: OpenLine) -> OpenLine:
    """Return the line with collectives left to the engine, whatever its site says."""
    site = line.loaded.site.model_copy(update={"collectives": None})
    return replace_fields(line, loaded=replace_fields(line.loaded, site=site))


def _watched_from_now(line: OpenLine, served: Served) -> None:
    """Start the watch beside the line, unless the site has none.

    Whoever serves by hand has seen what a watch did before, and it may do that again.
    """
    if STARTED_BY_WATCH not in os.environ:
        Record(line.store.root).served_by_hand()
    process = WatchProcess(line.store.root)
    if line.loaded.site.watch.enabled:
        process.start(line.loaded.path, line.store.root / served.run / "watch.log")
    else:
        process.end()


def _fleet_start(line: OpenLine, despite: list[str]) -> FleetStart | None:
    """Return what there is to do on a fleet's nodes. Raises UsageError for names of no check."""
    if line.nodes is not None:
        return FleetStart(line.loaded, line.nodes, despite, _tell, _warn)
    if despite:
        wanted = "a fleet: a local line is started without a doctor"
        raise UsageError(Problem(DESPITE, "given for a local line", wanted, "leave it out"))
    return None


def _tell(text: str) -> None:
    err.print(shown(text), markup=False)


def _warn(problem: Problem) -> None:
    print_problems((problem,), "warning", "yellow")


def _serve(line: OpenLine, replace: bool, start: FleetStart | None) -> Served:
    key = line.key()
    with err.status("looking at the nodes") as spinner:
        launch = line.launch()
        planned = make_plan(line.loaded, launch)
        if start is not None and launch is not None and launch.nccl is not None:
            start.watch_nccl(planned, launch.nccl)
        spinner.update(f"examining and starting {len(planned.ranks)} ranks")
        return serve_line(
            line.loaded,
            planned,
            key,
            line.runner,
            line.store,
            replace,
            _observer(spinner),
            fleet=start,
        )


def _observer(spinner: Spinner) -> Callable[[Progress], None]:
    """Return a function that shows progress: a live line on a terminal, news elsewhere."""
    shown: dict[str, float] = {}

    def observe(progress: Progress) -> None:
        text = (
            f"{progress.phase} {progress.seconds:.0f} s of {progress.limit} s, "
            f"waiting for rank {progress.rank}: {progress.last_line[:100]}"
        )
        if err.is_terminal:
            spinner.update(escape(text))
        elif progress.seconds >= shown.get(progress.phase, 0.0):
            shown[progress.phase] = progress.seconds + NEWS_SECONDS
            err.print(text, markup=False)

    return observe


def _print_served(served: Served, prompt: str, site: str) -> None:
    out.print(f"[bold green]ready[/]: {served.model} at [bold]{served.url}[/] (run {served.run})")
    phases = ", ".join(f"{phase} {seconds:.0f} s" for phase, seconds in served.seconds.items())
    out.print(f"  took:     {sum(served.seconds.values()):.0f} s ({phases})", markup=False)
    out.print(f"  asked:    {prompt}", markup=False)
    out.print(f"  answered: {served.answer.text!r}", markup=False)
    out.print(f"  stop it:  tetraspark stop --site {site}", markup=False)
