"""`tetraspark engine check`: is this the engine that the plugin was written for?"""

from typing import Annotated

import typer
from rich.text import Text

from tetraspark.cli.line import Json
from tetraspark.cli.output import err, out, print_json
from tetraspark.engine.check import EngineReport, check_engine, use_of
from tetraspark.engine.drift import Finding
from tetraspark.engine.tree import TreeError, open_tree
from tetraspark.errors import Problem, UsageError

COLOURS = {"found": "green", "moved": "yellow", "changed": "red", "missing": "red"}

engine = typer.Typer(help="Check the engine.", no_args_is_help=True)


@engine.callback()
def main() -> None:
    """Check the engine."""


@engine.command()
def check(
    sglang: Annotated[
        str | None,
        typer.Option(
            "--sglang",
            metavar="PATH",
            help="Wheel, unpacked wheel or checkout; else the installed one.",
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Show every target.")] = False,
    json: Json = False,
) -> None:
    """Compare an engine with what each hook was written for, reading its files only.

    Exit code 1 when anything has drifted, 2 when there is no engine to read.
    """
    try:
        with err.status("reading the engine"):
            report = check_engine(open_tree(sglang))
    except TreeError as error:
        where = "sglang" if sglang is None else sglang or "--sglang"
        raise UsageError(Problem(where, error.seen, error.wanted, error.fix)) from error
    print_json(report.as_dict()) if json else _print(report, every)
    if not report.ok:
        raise typer.Exit(1)


def _print(report: EngineReport, every: bool) -> None:
    out.print(f"sglang {report.version or 'of unknown version'} at {report.where}", markup=False)
    shown = [one for one in report.findings if every or one.verdict != "found"]
    if shown:
        out.print(_rows(shown))
    for pin in report.pins:
        if pin.verdict == "differs":
            text = f"{pin.package}: {pin.asked} with this engine, written for {pin.wanted}"
            out.print(Text(text, style="red"))
    out.print(_summary(report))


def _rows(shown: list[Finding]) -> Text:
    """Return a row a target: no table, which would cut or fold a name that is to be copied."""
    text = Text.assemble((f"{'verdict':<9}{'use':<9}target", "bold"))
    for one in shown:
        text.append(f"\n{one.verdict:<9}", style=COLOURS[one.verdict])
        text.append(f"{use_of(one):<9}{one.target.path}")
        if one.verdict != "found":
            text.append(f"\n{'':<18}{one.detail}; re-check {one.target.adapter}", style="dim")
    return text


def _summary(report: EngineReport) -> Text:
    verdicts = [finding.verdict for finding in report.findings]
    counts = ", ".join(f"{verdicts.count(one)} {one}" for one in COLOURS if one in verdicts)
    pins = [pin.verdict for pin in report.pins]
    counted = ", ".join(
        f"{pins.count(one)} {one}" for one in ("same", "differs", "unknown") if one in pins
    )
    word, style = ("no drift", "green") if report.ok else ("drifted", "red")
    return Text.assemble((f"{word}: ", f"bold {style}"), f"targets {counts}; pins {counted}")
