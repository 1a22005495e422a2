"""`tetraspark engine check`: does the plugin fit the installed engine?"""

from dataclasses import asdict

import typer
from rich.table import Table
from rich.text import Text

from tetraspark.cli.line import Json
from tetraspark.cli.output import out, print_json
from tetraspark.engine.check import check_engine
from tetraspark.engine.receipts import engine_version
from tetraspark.errors import Problem, RunError

engine = typer.Typer(help="The engine and the plugin in it.", no_args_is_help=True)


@engine.callback()
def main() -> None:
    """The engine and the plugin in it."""


@engine.command()
def check(json: Json = False) -> None:
    """Compare every place the plugin touches with the source it was written for."""
    findings = check_engine()
    if findings is None:
        fix = "run this where the engine is: in its environment or its container"
        raise RunError(Problem("sglang", "not installed", "the engine", fix))
    if json:
        places = [asdict(one) for one in findings]
        good = all(one.verdict == "found" for one in findings)
        print_json({"ok": good, "engine": engine_version(), "places": places})
    else:
        table = Table("place", "verdict", "source", "ours", box=None, pad_edge=False)
        for one in findings:
            cells = (one.target.path, one.verdict, one.sha256[:12], one.target.adapter)
            table.add_row(*(Text(cell) for cell in cells))
        out.print(f"sglang {engine_version()}")
        out.print(table)
    if any(one.verdict != "found" for one in findings):
        raise typer.Exit(1)
