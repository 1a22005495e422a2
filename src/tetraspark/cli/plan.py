"""`tetraspark plan`: what would run where, and why."""

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from tetraspark.cli.line import DEFAULT_SITE, Json, SitePath, warned
from tetraspark.cli.output import out, print_json, print_problems
from tetraspark.line.make_plan import make_plan
from tetraspark.line.plan import Plan
from tetraspark.site.load import load_site


def plan(
    site: SitePath = DEFAULT_SITE,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show where every value came from.")
    ] = False,
    json: Json = False,
) -> None:
    """Print what would run on each node, without doing it."""
    loaded = load_site(site)
    print_problems(loaded.warnings, "warning", "yellow")
    planned = warned(make_plan(loaded))
    if json:
        print_json(planned.as_dict())
        return
    print_plan(planned)
    if explain:
        print_origins(planned)


def print_plan(planned: Plan) -> None:
    """Print the ranks of a plan with the command of each, ready to paste."""
    out.print(f"line [bold]{planned.line}[/]: {planned.model} at [bold]{planned.url}[/]")
    for command in planned.ranks:
        out.print(f"\n[bold]rank {command.rank}[/] on {command.node}, port {command.port}")
        out.print(str(command), markup=False)


def print_origins(planned: Plan) -> None:
    """Print a table of every setting and where its value came from."""
    table = Table("setting", "value", "ranks", "from", box=None, pad_edge=False)
    for setting in planned.settings:
        ranks = "all" if setting.rank is None else str(setting.rank)
        cells = (setting.name, setting.value or "", ranks, setting.origin.where)
        table.add_row(*(Text(cell, overflow="fold") for cell in cells))
    out.print()
    out.print(table)
