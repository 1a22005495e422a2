"""`tetraspark qualify run` and `check`: every suite in order, and the receipt of it."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from tetraspark import __version__
from tetraspark.cli.line import DEFAULT_SITE, DryRun, Json, SitePath
from tetraspark.cli.output import err, out, print_json, print_problems, shown
from tetraspark.errors import Problem, UsageError
from tetraspark.fleet.login import logins
from tetraspark.fleet.ssh import SshRunner
from tetraspark.fleet.this_machine import HERE
from tetraspark.images.package import read_package
from tetraspark.measure.about import now
from tetraspark.measure.qualification.receipt import (
    NAME,
    Receipt,
    check_receipt,
    write_receipt,
)
from tetraspark.measure.qualification.sequence import Outcome, execute_with, not_reached, run_steps
from tetraspark.measure.qualification.step import Step, steps_of
from tetraspark.measure.qualification.versions import Versions, versions_here, versions_of
from tetraspark.site.load import LoadedSite, load_site

UNSEEN = "not seen"
STYLES = {"passed": "green", "failed": "red", "interrupted": "red", "not run": "yellow"}


def run(
    site: SitePath = DEFAULT_SITE,
    quick: Annotated[bool, typer.Option("--quick", help="Minutes in place of hours.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the line running.")] = False,
    folder: Annotated[
        Path | None, typer.Option("--out", help="A new folder for the reports and the receipt.")
    ] = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Examine, serve and measure a line; one receipt says what came of it.

    Exit code 1 when a step failed or did not run: the receipt says which, and why.
    """
    loaded = load_site(site)
    print_problems(loaded.warnings, "warning", "yellow")
    steps = steps_of(loaded.site, quick, keep)
    if dry_run:
        _plan(steps, json)
        return
    target = _new_folder(folder or Path(f"qualification-{loaded.site.name}-{_stamp()}"))
    receipt = _qualify(loaded, steps, quick, target)
    if json:
        print_json(receipt.model_dump())
    else:
        _print(receipt, target)
    if not receipt.passed:
        stopped = any(one.verdict == "interrupted" for one in receipt.steps)
        raise typer.Exit(130 if stopped else 1)


def check(
    receipt: Annotated[Path, typer.Argument(help=f"The {NAME} of a qualification.")],
    json: Json = False,
) -> None:
    """Is a receipt whole, with every report beside it? Exit code 1 if not, or if it failed."""
    found, problems = check_receipt(receipt)
    if json:
        told = [one.as_dict() for one in problems]
        print_json({"whole": not problems, "passed": found.passed, "problems": told})
    else:
        _print(found, receipt.parent)
        print_problems(problems)
        out.print("the receipt is whole" if not problems else "[red]the receipt is not whole[/]")
    if problems or not found.passed:
        raise typer.Exit(1)


def _qualify(loaded: LoadedSite, steps: tuple[Step, ...], quick: bool, folder: Path) -> Receipt:
    began, revision = now(), read_package().label
    nodes = _versions(loaded)

    def announce(step: Step) -> None:
        place = f"step {steps.index(step) + 1} of {len(steps)}"
        err.print(f"{place}: tetraspark {' '.join(step.words)}", markup=False)

    outcomes: list[Outcome] = []
    execute = execute_with(loaded.path)
    try:
        for outcome in run_steps(steps, loaded.sha256, folder, execute, announce):
            outcomes.append(outcome)
            err.print(f"{outcome.name}: {outcome.verdict} {shown(outcome.why)}", markup=False)
    finally:
        receipt = write_receipt(
            folder,
            [*outcomes, *not_reached(steps, outcomes)],
            nodes,
            profile="quick" if quick else "full",
            began=began,
            ended=now(),
            line=loaded.site.name,
            hardware_class="stand-in" if loaded.site.kind == "local" else "spark",
            site_sha256=loaded.sha256,
            tetraspark=__version__,
            revision=revision,
        )
    return receipt


def _versions(loaded: LoadedSite) -> tuple[Versions, ...]:
    if loaded.site.kind == "local":
        return (versions_here(HERE),)
    with SshRunner(logins(loaded)) as runner, err.status("looking at the nodes"):
        return versions_of(runner, tuple(node.name for node in loaded.site.nodes))


def _new_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        wanted = "a folder that is not there yet"
        raise UsageError(
            Problem(str(folder), error.strerror or str(error), wanted, "another --out")
        ) from error
    return folder


def _stamp() -> str:
    return now().replace(":", "").replace("-", "")[:15]


def _plan(steps: tuple[Step, ...], json: bool) -> None:
    if json:
        print_json(
            [
                {"name": one.name, "words": one.words, "needs": one.needs, "why_not": one.why_not}
                for one in steps
            ]
        )
        return
    table = Table("step", "command", "needs", box=None)
    for one in steps:
        command = f"({one.why_not})" if one.why_not else f"tetraspark {' '.join(one.words)}"
        table.add_row(one.name, command, ", ".join(one.needs))
    out.print(table)


def _print(receipt: Receipt, folder: Path) -> None:
    head = (
        f"# {receipt.line}, {receipt.hardware_class}, {receipt.profile}; site "
        f"{receipt.site_sha256[:16]}, tetraspark {receipt.tetraspark} at {receipt.revision[:20]}"
    )
    out.print(shown(head), markup=False)
    nodes = Table("node", "kernel", "driver", "board", "NIC firmware", box=None)
    for node in receipt.nodes:
        nics = ", ".join(f"{name} {one}" for name, one in (node.nics or {}).items())
        told = (node.kernel, node.driver, node.board, nics)
        cells = [f"not reached: {node.error}"] if node.error else [one or UNSEEN for one in told]
        nodes.add_row(*map(_plain, (node.node, *cells)))
    out.print(nodes)
    steps = Table("step", "", "s", "", box=None)
    for step in receipt.steps:
        verdict = Text(step.verdict, style=STYLES.get(step.verdict, "dim"))
        seconds = "" if step.seconds is None else f"{step.seconds:.1f}"
        steps.add_row(_plain(step.name), verdict, seconds, _plain(step.why))
    out.print(steps)
    word = "passed" if receipt.passed else "FAILED"
    out.print(f"{word}: {folder / NAME}", markup=False)


def _plain(text: str) -> Text:
    """Return text of a receipt, which somebody else may have written, as it stands there."""
    return Text(shown(text))
