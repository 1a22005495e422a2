"""`tetraspark pack`: each rank's Engram rows on its own disk, and the proof that they are whole."""

import shlex
from collections.abc import Collection
from pathlib import Path
from typing import Annotated

import typer

from tetraspark.cli.line import DEFAULT_SITE, DryRun, Json, SitePath
from tetraspark.cli.output import err, print_json, print_problems
from tetraspark.cli.pack_view import PackView, print_pack_plan, print_pack_report
from tetraspark.engram.layout import Split
from tetraspark.engram.plan import PackPlan, local_plan
from tetraspark.engram.request import Mode
from tetraspark.engram.run import Here, NodeReport, PackReport, Runner, run_plan, with_room
from tetraspark.engram.site_plan import site_plan, site_wanted
from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.fleet.facts import Facts
from tetraspark.fleet.login import logins
from tetraspark.fleet.probe import probe_all
from tetraspark.fleet.ssh import SshRunner
from tetraspark.site.load import LoadedSite, load_site
from tetraspark.site.source import read_text


def pack(
    context: typer.Context,
    site: SitePath = DEFAULT_SITE,
    node: Annotated[
        list[str] | None, typer.Option("--node", help="Only this node; may be repeated.")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read every byte of what is packed; write nothing.")
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Pack anew, in the place of what is there.")
    ] = False,
    local: Annotated[
        Path | None, typer.Option("--local", help="Checkpoint here; pack on this machine.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="With --local: where to.")] = None,
    rank: Annotated[int | None, typer.Option("--rank", help="With --local: whose rows.")] = None,
    tp: Annotated[
        int | None, typer.Option("--tp", min=1, max=1024, help="With --local: of how many.")
    ] = None,
    split: Annotated[
        Split,
        typer.Option(
            "--split", help="With --local: rows for dsv4.1's readers, columns for 0.5.23."
        ),
    ] = "rows",
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Pack each rank's Engram rows onto its node, where one read gets a whole row."""
    _check_options(context, local is not None)
    mode: Mode = "verify" if verify else "pack"
    if local is not None:
        if out is None or rank is None or tp is None:
            seen = "without --out, --rank or --tp"
            fix = "tetraspark pack --local MODEL --out FOLDER --rank 0 --tp 4"
            raise UsageError(Problem("--local", seen, "all three", fix))
        planned = _plan_here(local, out, rank, tp, split, mode, replace)
        _show(planned, json) if dry_run else _finish(_run(planned, Here()), json)
        return
    loaded = load_site(site)
    print_problems(loaded.warnings, "warning", "yellow")
    with SshRunner(logins(loaded)) as runner:
        facts, lost = _look(loaded, runner, node or ())
        planned = site_plan(loaded, facts, mode, replace=replace, only=node or ())
        if dry_run:
            _show(planned, json)
            print_problems(problem for one in lost for problem in one.problems)
            raise typer.Exit(1 if lost else 0)
        report = _run(planned, runner)
    _finish(PackReport(report.mode, (*report.nodes, *lost)), json)


def _look(
    loaded: LoadedSite, runner: SshRunner, only: Collection[str]
) -> tuple[dict[str, Facts], list[NodeReport]]:
    """Look at the nodes; return what was found, and a report of each that is out of reach.

    The head is looked at as well where it is not asked for: it has the checkpoint.
    """
    names = [node.name for node in loaded.site.nodes]
    asked = [name for name in names if not only or name in only or name == names[0]]
    wanted = site_wanted(loaded)
    with err.status("looking at the nodes"):
        found = probe_all(runner, {name: wanted[name] for name in asked})
    facts = {name: one for name, one in found.items() if isinstance(one, Facts)}
    lost = [
        NodeReport(name, names.index(name), problems=one.problems)
        for name, one in found.items()
        if isinstance(one, RunError) and (not only or name in only or not facts)
    ]
    if not facts:
        raise RunError(*(problem for one in lost for problem in one.problems))
    return facts, lost


def _plan_here(
    local: Path, out: Path, rank: int, tp: int, split: Split, mode: Mode, replace: bool
) -> PackPlan:
    path = local / "config.json"
    if not 0 <= rank < tp:
        raise UsageError(Problem("--rank", f"{rank} of {tp}", f"0 to {tp - 1}", "correct it"))
    there = local if local.is_dir() else Path()
    fix = f"name the folder of a checkpoint; look: ls {shlex.quote(str(there))}"
    text = read_text(path, "a checkpoint", fix)
    folders = str(local.absolute()), str(out.absolute())
    try:
        return with_room(local_plan(text, *folders, rank, tp, split, mode, replace))
    except ValueError as error:
        wanted = "the config.json of a checkpoint with Engram tables"
        raise UsageError(
            Problem(str(path), str(error), wanted, f"head {shlex.quote(str(path))}")
        ) from error


def _run(plan: PackPlan, runner: Runner) -> PackReport:
    view = PackView(plan)
    try:
        with view.shown():
            return run_plan(plan, runner, view.observe)
    except (KeyboardInterrupt, SystemExit) as end:  # `main` makes a SystemExit of SIGTERM
        err.print("interrupted: what is packed stays, and the same command goes on from there")
        code = 130 if isinstance(end, KeyboardInterrupt) else end.code
        raise SystemExit(code) from None


def _show(plan: PackPlan, json: bool) -> None:
    print_json(plan.as_dict()) if json else print_pack_plan(plan)


def _finish(report: PackReport, json: bool) -> None:
    print_json(report.as_dict()) if json else print_pack_report(report)
    print_problems(report.problems)
    if report.problems:
        raise typer.Exit(1)


def _check_options(context: typer.Context, here: bool) -> None:
    """Refuse what would be ignored, and what contradicts itself."""
    given = {
        name
        for name in context.params
        if (one := context.get_parameter_source(name)) and one.name == "COMMANDLINE"
    }
    idle = {"site", "node"} if here else {"out", "rank", "tp", "split"}
    problems = [
        Problem(
            f"--{name}",
            f"given {'with' if here else 'without'} --local",
            "a site's nodes, or one rank on this machine",
            f"leave out --{name}" if here else "add --local MODEL, or leave it out",
        )
        for name in sorted(given & idle)
    ]
    if {"verify", "replace"} <= given:
        fix = "leave out one of the two"
        problems.append(Problem("--verify", "given with --replace", "one of them", fix))
    if problems:
        raise UsageError(*problems)
