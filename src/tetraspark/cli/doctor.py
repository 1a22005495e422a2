"""`tetraspark doctor`: can this line be started on these nodes, and if not, what to do."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from tetraspark.cli.line import DEFAULT_SITE, DryRun, Json, SitePath
from tetraspark.cli.output import err, out, print_json, print_problems, shown
from tetraspark.doctor.catalogue import CATALOGUE
from tetraspark.doctor.check import Check
from tetraspark.doctor.choice import listed
from tetraspark.doctor.examine import examine
from tetraspark.doctor.outline import Outline, outline
from tetraspark.doctor.report import Report, fails
from tetraspark.errors import Problem, UsageError
from tetraspark.fleet.login import logins
from tetraspark.fleet.ssh import SshRunner
from tetraspark.site.load import LoadedSite, load_site

COLOURS = {"failed": "red", "unknown": "magenta", "warning": "yellow", "ok": "green"}


def doctor(
    site: SitePath = DEFAULT_SITE,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="ID", help="Only these: ID or its beginning, with commas."),
    ] = None,
    node: Annotated[
        list[str] | None, typer.Option("--node", help="Only this node; may be repeated.")
    ] = None,
    burn: Annotated[
        bool, typer.Option("--burn", help="Also load each GPU for 10 s, unless one is in use.")
    ] = False,
    show: Annotated[bool, typer.Option("--list", help="Show the checks; touch no node.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Show the checks that are ok, too.")] = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Look at every node, change nothing: what was observed, what is wanted, how to mend it.

    Exit code 1 when a check failed, or one that is required could not be made.
    """
    if show:
        _refuse_idle({"--only": only, "--node": node, "--burn": burn, "--dry-run": dry_run})
        _list(json)
        return
    loaded = load_site(site)
    ids = listed(only or ())
    if dry_run:
        planned = outline(loaded, ids, node or (), burn)
        print_json([one.as_dict() for one in planned]) if json else _print_outline(planned)
        return
    print_problems(loaded.warnings, "warning", "yellow")
    report = _examined(loaded, ids, node or [], burn)
    print_json(report.as_dict()) if json else _print(report, every)
    if report.failed:
        raise typer.Exit(1)


def _refuse_idle(options: Mapping[str, object]) -> None:
    """Refuse what has no effect beside --list."""
    wanted, fix = "--list without it: it shows every check, and touches no node", "leave it out"
    idle = [name for name, value in options.items() if value]
    if idle:
        raise UsageError(*(Problem(one, "given with --list", wanted, fix) for one in idle))


def _examined(loaded: LoadedSite, ids: list[str], nodes: list[str], burn: bool) -> Report:
    fleet = loaded.site.kind == "fleet"
    count = len(set(nodes)) or len(loaded.site.nodes)
    told = f"looking at {count} node{'s' if count > 1 else ''}" if fleet else "looking"
    with SshRunner(logins(loaded)) if fleet else nullcontext() as runner, _telling(told):
        return examine(loaded, runner, ids, nodes, burn)


def _telling(what: str) -> AbstractContextManager[object]:
    """Tell on stderr what goes on meanwhile: a spinner on a terminal, a line elsewhere."""
    if err.is_terminal:
        return err.status(what)
    err.print(what)
    return nullcontext()


def _list(json: bool) -> None:
    if json:
        print_json([one.as_dict() for one in CATALOGUE])
        return
    table = Table("check", "looks at", "lines", "", box=None, pad_edge=False)
    for one in CATALOGUE:
        title = f"{one.title}; required" if one.required else one.title
        table.add_row(one.id, one.scope, " ".join(one.kinds), title)
    out.print(table)


def _print_outline(planned: tuple[Outline, ...]) -> None:
    for one in planned:
        out.print(f"# {one.node}: {one.words}", markup=False)
        for line in one.lines:
            out.print(line, markup=False)


def _print(report: Report, every: bool) -> None:
    """Print what is not ok, node by node, what fails first; then one line about all of it."""
    for node in (None, *report.nodes):
        here = [one for one in report.checks if one.node == node]
        _print_node(node or "all nodes", [one for one in here if every or one.verdict != "ok"])
    counts = ", ".join(
        f"{report.count(one)} {one}" for one in ("ok", "warning", "failed", "unknown")
    )
    word, style = ("not ready", "red") if report.failed else ("no failure", "green")
    tail = f": {counts}; {len(report.nodes)} nodes in {report.seconds:.1f} s"
    out.print(Text.assemble((f"{report.line} {word}", f"bold {style}"), tail))


def _print_node(name: str, checks: list[Check]) -> None:
    if not checks:
        return
    out.print(Text(name, style="bold"))
    order = list(COLOURS)
    for one in sorted(checks, key=lambda it: (not fails(it), order.index(it.verdict))):
        out.print(Text.assemble((f"  {one.verdict:<8}", COLOURS[one.verdict]), one.id))
        for label, text in (("seen", one.observed), ("wanted", one.wanted), ("fix", one.fix)):
            if text:
                out.print(Text.assemble((f"    {label + ':':<8}", "dim"), shown(text)))
