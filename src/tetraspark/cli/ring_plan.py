"""`tetraspark ring plan`: addresses, paths and relay rules of a ring, changing nothing."""

from ipaddress import IPv4Network
from pathlib import Path
from typing import Annotated

import typer

from tetraspark.cli.fabric_inventory import Source
from tetraspark.cli.line import DEFAULT_SITE, Json, SitePath
from tetraspark.cli.output import out, print_json, print_problems
from tetraspark.cli.ring_view import print_degraded, print_plan
from tetraspark.errors import Problem, UsageError
from tetraspark.ring.build import ring_plan
from tetraspark.ring.degraded import degraded_plans
from tetraspark.ring.nodes import parse_lost_function, plan_file, ring_nodes, write_degraded
from tetraspark.ring.options import BASES, RingOptions


def plan(
    context: typer.Context,
    site: SitePath = DEFAULT_SITE,
    saved: Annotated[
        Path | None,
        typer.Option("--from", help="Plan from an inventory that `fabric show --json` printed."),
    ] = None,
    base: Annotated[
        list[str] | None,
        typer.Option("--base", help="Network for one half of all cables; give two."),
    ] = None,
    lost_cable: Annotated[
        int | None, typer.Option("--lost-cable", help="Plan without this cable, as a line.")
    ] = None,
    lost_function: Annotated[
        str | None, typer.Option("--lost-function", help="Plan without this one, NODE:DEVICE.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--out", help="Write the plan, for `ring simulate` and `apply`.")
    ] = None,
    degraded: Annotated[
        Path | None,
        typer.Option("--degraded", help="Write a plan for every single loss into this folder."),
    ] = None,
    json: Json = False,
) -> None:
    """Plan the ring of a site, or of a saved inventory. Nothing on any node changes."""
    options = _options(base, lost_cable, lost_function)
    source = Source.of(context, site, saved)
    target = None if file is None else plan_file(file, "--out")
    if target is not None:
        target.require()
    with source.naming():
        fabrics, options = ring_nodes(source.inventory(), options)
        planned = ring_plan(fabrics, options)
    warnings = [source.name_in(one) for one in planned.warnings]
    print_problems(warnings, "warning", "yellow")
    losses = () if planned.lost else degraded_plans(fabrics, planned, options)
    if target is not None:
        target.write(planned.text())
    written = write_degraded(losses, degraded) if degraded else []
    if json:
        print_json({"plan": planned.as_dict(), "degraded": [one.as_dict() for one in losses]})
        return
    print_plan(planned)
    print_degraded(losses)
    for path in [*([file] if file else []), *written]:
        out.print(f"written: {path}", markup=False)


def _options(base: list[str] | None, cable: int | None, function: str | None) -> RingOptions:
    if cable is not None and function is not None:
        fix = "make one plan for each"
        seen = "--lost-cable and --lost-function"
        raise UsageError(Problem("ring plan", seen, "one loss in a plan", fix))
    lost = None if function is None else parse_lost_function(function)
    bases = BASES if not base else tuple(map(_base, base))
    return RingOptions(bases=bases, lost_cable=cable, lost_function=lost)


def _base(text: str) -> IPv4Network:
    try:
        return IPv4Network(text)
    except ValueError as error:
        fix = "--base 10.10.0.0/16 --base 10.11.0.0/16"
        raise UsageError(Problem("--base", str(error), "an IPv4 network", fix)) from error
