"""`tetraspark watch`: look at a served line again and again, say what changes, act on a wedge."""

import contextlib
import json as jsonlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tetraspark.cli.line import (
    DEFAULT_SITE,
    Json,
    LineName,
    OpenLine,
    SitePath,
    open_line,
    open_loaded,
)
from tetraspark.cli.named_line import store_of
from tetraspark.cli.number import number
from tetraspark.cli.output import err, print_json, print_problems
from tetraspark.cli.watch_view import WatchView, print_observation
from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.fleet.this_machine import ThisMachine
from tetraspark.receipts.rollback import recorded_site
from tetraspark.receipts.store import ReceiptStore
from tetraspark.site.watch import OnWedge
from tetraspark.watch.act import restart, restart_words
from tetraspark.watch.board import Board
from tetraspark.watch.observation import Observation
from tetraspark.watch.observer import Observer
from tetraspark.watch.process import WatchProcess
from tetraspark.watch.record import Page, Record
from tetraspark.watch.watch import Watch
from tetraspark.watch.watched import Watched

if TYPE_CHECKING:
    from tetraspark.watch.http import Server

LOOPBACK = "127.0.0.1"


def watch(
    site: SitePath = DEFAULT_SITE,
    line_name: LineName = None,
    receipt: Annotated[
        str | None,
        typer.Option(
            "--receipt",
            metavar="RECEIPT",
            help="By the site that this receipt recorded, as after a rollback.",
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Look once; exit code 1 unless the line is ready.")
    ] = False,
    interval: Annotated[
        float | None,
        number("--interval", "Seconds between looks; else the site's.", 0.2, 600),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65_535, help="Of the status page; else the site's."),
    ] = None,
    until_stopped: Annotated[
        bool, typer.Option("--until-stopped", help="End when somebody stops the line.")
    ] = False,
    json: Json = False,
) -> None:
    """Watch the line; without a terminal, one JSON line a change of its state."""
    with _open(site, line_name, receipt) as line:
        if once:
            _once(line, json)
            return
        how = _watch(line, interval, port, until_stopped, plain=json).restart
        words = _restart_words(line, how) if how is not None else None
    if words is not None:
        raise typer.Exit(restart(line.loaded.path, words, os.environ))


@contextlib.contextmanager
def _open(site: Path, name: str | None, receipt: str | None) -> Iterator[OpenLine]:
    """Open the line of a site file, or of what a receipt recorded of it."""
    if receipt is None:
        if name is not None:
            wanted = "--receipt beside it, or --site alone: a watch needs a site"
            raise UsageError(
                Problem("--line", f"--line {name}", wanted, "tetraspark receipts list")
            )
        with open_line(site) as line:
            yield line
        return
    store = ReceiptStore(store_of(site, name).root)
    found = store.read(store.find(receipt))
    with open_loaded(recorded_site(found, store.path(found.id))) as line:
        yield line


def _restart_words(line: OpenLine, how: OnWedge) -> list[str]:
    """Return the words of a `serve` that starts the line as its last start was asked for."""
    run = line.store.latest()
    found = run.read().get("tolerated", []) if run else []
    despite = sorted({check["id"] for check in found})
    _, plan = line.store.planned() or (None, {})
    return restart_words(how, plan, despite)


def _watched(line: OpenLine) -> Watched:
    site = line.loaded.site
    observer = Observer(line.runner, line.store, line.key(), site.model.canary, site.watch)
    nodes = line.nodes if line.nodes is not None else ThisMachine()
    return Watched(line.loaded, line.runner, line.store, nodes, observer)


def _once(line: OpenLine, json: bool) -> None:
    found = Watch.one_look(_watched(line))
    print_json(found.as_dict()) if json else print_observation(found)
    if found.state != "ready":
        raise typer.Exit(1)


def _watch(
    line: OpenLine, interval: float | None, port: int | None, until_stopped: bool, plain: bool
) -> Watch:
    board = Board()
    live = err.is_terminal and not plain
    made = Watch(_watched(line), board, (lambda found: None) if live else _say, interval)
    stale_after = made.limits.longest_step
    with (
        WatchProcess(line.store.root).held(),
        _page(line, board, port, stale_after),
        WatchView(board).shown() if live else contextlib.nullcontext(),
        contextlib.suppress(KeyboardInterrupt),
    ):
        made.run(until_stopped)
    return made


@contextlib.contextmanager
def _page(line: OpenLine, board: Board, port: int | None, stale_after: float) -> Iterator[None]:
    """Serve the status page meanwhile, and record where."""
    page, server = _serve_page(line, board, port, stale_after)
    with contextlib.suppress(OSError):  # A full disk keeps nobody from looking on.
        Record(line.store.root).show(page)
    try:
        yield
    finally:
        if server is not None:
            server.close()


def _serve_page(
    line: OpenLine, board: Board, port: int | None, stale_after: float
) -> tuple[Page, "Server | None"]:
    """Serve the page at `port`, or as the site says; without the site's port the watch goes on."""
    from tetraspark.watch.http import FREE_PORT, serve_page  # Here, or every command would load it.

    settings = line.loaded.site.watch
    if port is None and not settings.page:
        return Page(), None
    free = f"watch.port = 0 in {line.loaded.path} takes a free one at the next start"
    try:
        server = serve_page(
            board,
            LOOPBACK,
            settings.port if port is None else port,
            stale_after=stale_after,
            free_port=free if port is None else FREE_PORT,
        )
    except RunError as error:
        if port is not None:
            raise
        print_problems(error.problems, "warning", "yellow")
        return Page(problem=error.problems[0]), None
    url = f"http://{LOOPBACK}:{server.port}/"
    err.print(f"status page: {url}", markup=False)
    return Page(url), server


def _say(found: Observation) -> None:
    """Print a change of state as one line of JSON; a full disk does not end the watch."""
    names = ("at", "run", "state", "reason", "rank", "since", "findings")
    told = found.as_dict()
    with contextlib.suppress(OSError):
        sys.stdout.write(jsonlib.dumps({name: told[name] for name in names}) + "\n")
        sys.stdout.flush()
