"""`tetraspark serve`: start the line, return when it has proven that it serves."""

import os
from collections.abc import Callable
from dataclasses import replace as replace_fields
from typing import Annotated

import typer
from rich.markup import escape
from rich.status import Status as Spinner

from tetraspark.cli.line import DEFAULT_SITE, DryRun, Json, OpenLine, SitePath, open_line, warned
from tetraspark.cli.output import err, out, print_json, print_news, print_problems
from tetraspark.cli.plan import print_plan
from tetraspark.cli.receipt_taker import ReceiptTaker
from tetraspark.doctor.choice import listed
from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.line.collective_settings import without_transport
from tetraspark.line.fleet_preflight import DESPITE
from tetraspark.line.fleet_start import FleetStart
from tetraspark.line.make_plan import make_plan
from tetraspark.line.plan import Plan
from tetraspark.line.progress import Progress
from tetraspark.line.serve import Served
from tetraspark.line.serve import serve as serve_line
from tetraspark.line.units import WATCHED_BY
from tetraspark.receipts.look import receipt_wanted
from tetraspark.receipts.store import ReceiptStore
from tetraspark.watch.process import WatchProcess
from tetraspark.watch.record import STARTED_BY_WATCH, Page, Record

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
    leave_out: Annotated[
        bool,
        typer.Option("--without-transport", help="Leave all collectives to the engine this time."),
    ] = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Start every rank, wait for the proof that the line serves, and leave it running."""
    with open_line(site) as opened:
        line = opened
        if leave_out:
            line = replace_fields(opened, loaded=without_transport(opened.loaded))
        start = fleet_start(line, listed(despite or ()))
        if dry_run:
            planned = warned(make_plan(line.loaded, line.launch()))
            print_json(planned.as_dict()) if json else print_plan(planned)
            return
        served = start_line(line, replace, start)
        if json:
            print_json(served.as_dict())
        else:
            print_served(served, line.loaded.site.model.canary.prompt, str(site))


def _watched_from_now(line: OpenLine, run: str, *, by_receipt: bool) -> Page:
    """Start the watch beside the line, unless the site has none or a unit of its own watches.

    `by_receipt`: the site file is not what is served; this start's receipt has that.

    Whoever serves by hand has seen what a watch did before, and it may do that again. Returns
    where its page is or why there is none; a line that serves is not given up for its watch.
    """
    if STARTED_BY_WATCH not in os.environ:
        damaged = Record(line.store.root).served_by_hand()
        print_problems([damaged] if damaged else [], "warning", "yellow")
    process = WatchProcess(line.store.root)
    if not line.loaded.site.watch.enabled:
        process.end()
    elif WATCHED_BY not in os.environ:
        try:
            with err.status("starting the watch"):
                words = ("--line", line.store.root.name, "--receipt", run) if by_receipt else ()
                return process.start(line.loaded.path, line.store.root / run / "watch.log", words)
        except RunError as error:
            return Page(problem=error.problems[0])
    return Page()


def with_watch(line: OpenLine, served: Served, *, by_receipt: bool = False) -> Served:
    """Start the watch beside a line that serves; return it with its page, or with why it has none.

    That is a warning too.
    """
    page = _watched_from_now(line, served.run, by_receipt=by_receipt)
    if page.problem is not None:
        _warn(page.problem)
    return replace_fields(served, page=page.url, page_problem=page.problem)


def fleet_start(line: OpenLine, despite: list[str]) -> FleetStart | None:
    """Return what there is to do on a fleet's nodes. Raises UsageError for names of no check."""
    if line.nodes is not None:
        also = receipt_wanted(line.loaded)
        return FleetStart(line.loaded, line.nodes, despite, print_news, _warn, also)
    if despite:
        wanted = "a fleet: a local line is started without a doctor"
        raise UsageError(Problem(DESPITE, "given for a local line", wanted, "leave it out"))
    return None


def _warn(problem: Problem) -> None:
    print_problems((problem,), "warning", "yellow")


def start_line(
    line: OpenLine,
    replace: bool,
    start: FleetStart | None,
    rollback_of: str | None = None,
    accept: Callable[[Plan], None] = lambda planned: None,
) -> Served:
    """Start a line, wait for its proof, and keep its receipt.

    `accept` sees the plan before anything is done, and raises what is wrong with it.
    """
    key = line.key()
    try:
        with err.status("looking at the nodes") as spinner:
            launch = start.launch() if start is not None else None
            planned = warned(make_plan(line.loaded, launch))
            accept(planned)
            if start is not None and launch is not None and launch.nccl is not None:
                start.watch_nccl(planned, launch.nccl)
            receipt = ReceiptTaker(line, start, key, rollback_of)
            spinner.update(f"examining and starting {len(planned.ranks)} ranks")
            served = serve_line(
                line.loaded,
                planned,
                key,
                line.runner,
                line.store,
                replace,
                _observer(spinner),
                fleet=start,
            )
    except KeyboardInterrupt:
        err.print("interrupted: every rank of this start has been stopped")
        raise typer.Exit(130) from None
    receipt.keep(served)
    kept = ReceiptStore(line.store.root).path(served.run).exists()
    return with_watch(line, served, by_receipt=kept and rollback_of is not None)


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
            print_news(text)

    return observe


def print_served(served: Served, prompt: str, site: str) -> None:
    """Print that a line is ready, and how to stop it."""
    out.print(f"[bold green]ready[/]: {served.model} at [bold]{served.url}[/] (run {served.run})")
    phases = ", ".join(f"{phase} {seconds:.0f} s" for phase, seconds in served.seconds.items())
    out.print(f"  took:     {sum(served.seconds.values()):.0f} s ({phases})", markup=False)
    out.print(f"  asked:    {prompt}", markup=False)
    out.print(f"  answered: {served.answer.text!r}", markup=False)
    if served.page is not None:
        out.print(f"  page:     {served.page}", markup=False)
    out.print(f"  stop it:  tetraspark stop --site {site}", markup=False)
