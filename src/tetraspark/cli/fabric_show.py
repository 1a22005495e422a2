"""`tetraspark fabric show`: cables, subnets, devices, GIDs, MTUs and states, drawn."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from tetraspark.cli.fabric_inventory import Source
from tetraspark.cli.fabric_table import unbroken
from tetraspark.cli.line import DEFAULT_SITE, Json, SitePath
from tetraspark.cli.output import out, print_json, shown
from tetraspark.doctor.check import Check
from tetraspark.fabric.draw import joined, rows
from tetraspark.fabric.draw_svg import is_svg, svg
from tetraspark.fabric.inventory_file import Inventory
from tetraspark.fabric.saved_file import OutputFile

COLOURS = {"warning": "yellow", "failed": "red", "unknown": "magenta"}
COLUMNS = (
    *("node", "port", "other end", "device", "RDMA", "link", "MTU/RDMA", "IPv4", "GID"),
    "note",
)


def show(
    context: typer.Context,
    site: SitePath = DEFAULT_SITE,
    saved: Annotated[
        Path | None,
        typer.Option("--from", help="Show an inventory that --json printed, ask no node."),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--svg", help="Write a picture to this file as well.")
    ] = None,
    json: Json = False,
) -> None:
    """Show how the nodes are joined, and what of it is wrong; exit code 1 when something is."""
    source = Source.of(context, site, saved)
    file = None
    if picture is not None:
        file = OutputFile(picture, "--svg", "a picture of a fabric", is_svg)
        file.require()
    inventory = source.inventory()
    if file is not None:
        file.write(svg(inventory))
    print_json(inventory.as_dict()) if json else _print(inventory, source)
    if inventory.cabling.absent or any(one.verdict == "failed" for one in inventory.checks):
        raise typer.Exit(1)


def _print(inventory: Inventory, source: Source) -> None:
    cabling = inventory.cabling
    words = f"{cabling.shape} {cabling.orientation or ''}".rstrip()
    out.print(Text.assemble("fabric of ", (shown(inventory.line), "bold"), f": {words}"))
    for line in joined(cabling):
        out.print(f"  {shown(line)}", markup=False)
    table = unbroken(*COLUMNS)
    last: tuple[str, str] = ("", "")
    for row in rows(inventory):
        place = (row.node, row.port)
        head = ("", "", "") if place == last else (*place, row.far)
        cells = (*head, row.netdev, row.rdma, row.link, row.mtu, row.addresses, row.gid, row.note)
        table.add_row(*(Text(shown(cell)) for cell in cells))
        last = place
    out.print()
    out.print(table)
    _print_checks(inventory.checks, source)


def _print_checks(checks: list[Check], source: Source) -> None:
    out.print(f"\n{sum(one.verdict == 'ok' for one in checks)} of {len(checks)} checks are ok")
    for one in checks:
        if one.verdict != "ok":
            where = f" {one.node}" if one.node else ""
            out.print(f"[bold {COLOURS[one.verdict]}]{one.verdict}[/] {one.id}{where}")
            fix = source.named(one.fix)
            for label, text in (("seen", one.observed), ("wanted", one.wanted), ("fix", fix)):
                out.print(f"  {label + ':':<8}{shown(text)}", markup=False)
