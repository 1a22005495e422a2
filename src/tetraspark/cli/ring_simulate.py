"""`tetraspark ring simulate`: follow every frame of a plan; exit code 1 when one is lost."""

from pathlib import Path
from typing import Annotated

import typer

from tetraspark.cli.line import Json
from tetraspark.cli.output import print_json
from tetraspark.cli.ring_view import print_simulation
from tetraspark.ring.plan import read_plan
from tetraspark.ring.simulate import simulate as simulate_plan


def simulate(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="File of `ring plan --out`.")],
    json: Json = False,
) -> None:
    """Follow a frame of every path of a plan, marker, route and rule by rule. Touches no node."""
    found = simulate_plan(read_plan(plan))
    print_json(found.as_dict()) if json else print_simulation(found)
    if found.lost:
        raise typer.Exit(1)
