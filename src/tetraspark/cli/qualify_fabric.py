"""`tetraspark qualify fabric`: the RDMA lanes between all nodes of a site, from one place."""

from typing import Annotated

import typer
from rich.table import Table

from tetraspark.cli.line import DEFAULT_SITE, DryRun, Json, SitePath
from tetraspark.cli.output import err, out, print_json, print_problems
from tetraspark.fleet.login import logins
from tetraspark.fleet.ssh import SshRunner
from tetraspark.measure.qualification.fleet_lanes import lane_commands, qualify_fleet
from tetraspark.site.load import load_site


def fabric(
    site: SitePath = DEFAULT_SITE,
    rounds: Annotated[
        int, typer.Option("--rounds", min=1, max=1_000_000, help="Timed operations.")
    ] = 100,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Run `qualify lanes` on every node of a site, each in a container of the line's image."""
    loaded = load_site(site)
    print_problems(loaded.warnings, "warning", "yellow")
    commands = lane_commands(loaded, rounds)
    if dry_run:
        told = {node: str(command) for node, command in commands.items()}
        if json:
            print_json(told)
            return
        for node, command in told.items():
            out.print(f"# {node}\n{command}", markup=False)
        return
    with SshRunner(logins(loaded)) as runner, err.status("qualifying the lanes of every node"):
        found = qualify_fleet(runner, commands)
    if json:
        print_json(found)
        return
    table = Table("lane", "16 B all-reduce, us", "sent, GB/s", box=None)
    for lane in found["lanes"]:
        figures = (f"{lane['small_us']:.1f}", f"{lane['gigabytes_per_s']:.3f}")
        table.add_row(" ".join(lane["devices"]), *figures)
    out.print(table)
