"""`tetraspark fabric nccl`: what NCCL is told on this fabric, why, and what will carry."""

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from tetraspark.cli.fabric_inventory import Source
from tetraspark.cli.fabric_table import unbroken
from tetraspark.cli.line import DEFAULT_SITE, Json, SitePath
from tetraspark.cli.output import out, print_json, print_problems, shown
from tetraspark.errors import Problem, UsageError
from tetraspark.fabric.inventory_file import Inventory
from tetraspark.fabric.nccl_choose import choose
from tetraspark.fabric.nccl_port import functions_of
from tetraspark.fabric.nccl_profile import NcclProfile
from tetraspark.fabric.nccl_refusals import FIRST
from tetraspark.fabric.nccl_route import Patch
from tetraspark.fabric.nccl_version import image_version, parse_version
from tetraspark.fabric.survey import chosen
from tetraspark.site.load import LoadedSite, load_site


class Library(StrEnum):
    """What a patched library does."""

    advertise_2 = "advertise-2"
    dual_pci = "dual-pci"


def nccl(
    context: typer.Context,
    site: SitePath = DEFAULT_SITE,
    saved: Annotated[
        Path | None,
        typer.Option("--from", help="Take an inventory that `fabric show --json` printed."),
    ] = None,
    nccl_version: Annotated[
        str | None,
        typer.Option(help="NCCL of the image; without it, the recipe's or the site's."),
    ] = None,
    patch: Annotated[
        Library | None, typer.Option(help="What a patched library does, in place of nccl_patch.")
    ] = None,
    json: Json = False,
) -> None:
    """Show NCCL's variables for this fabric with their reasons; exit code 1 when it is refused."""
    loaded = load_site(site)
    print_problems(loaded.warnings, "warning", "yellow")
    _, devices = chosen(loaded)
    source = Source.of(context, site, saved, both=True)
    version = _version(nccl_version, loaded)
    inventory = source.inventory(loaded)
    if saved is not None:
        _same_nodes(loaded, inventory, saved)
    told: Patch | None = None if patch is None else patch.value
    with source.naming():
        functions = functions_of(devices, inventory.fabrics)
        found = choose(
            *(inventory.cabling, functions, version, loaded, told), absences=inventory.absences
        )
    profile = replace(found, refusals=tuple(map(source.name_in, found.refusals)))
    if json:
        print_json(profile.as_dict())
    else:
        _print(profile, loaded.site.name, seen=bool(inventory.fabrics))
    if profile.refusals:
        raise typer.Exit(1)


def _version(told: str | None, loaded: LoadedSite) -> str | None:
    """Return the version of the image. Raises UsageError for a text that is none, and a clash."""
    if told is None:
        return image_version(loaded)
    try:
        return ".".join(map(str, parse_version(told)))
    except ValueError as error:
        fix = f"--nccl-version {FIRST}"
        wanted = f"a version such as {FIRST}"
        raise UsageError(Problem("--nccl-version", str(error), wanted, fix)) from None


def _same_nodes(loaded: LoadedSite, inventory: Inventory, saved: Path) -> None:
    nodes = tuple(node.name for node in loaded.site.nodes)
    if inventory.nodes != nodes:
        seen, wanted = ", ".join(inventory.nodes), f"the nodes of the site: {', '.join(nodes)}"
        fix = f"tetraspark fabric show --site {loaded.path} --json > {saved}"
        raise UsageError(Problem(str(saved), f"nodes {seen}", wanted, fix))


def _print(profile: NcclProfile, line: str, seen: bool) -> None:
    """Print a profile; of nodes of which none was seen only why, since it is then no finding."""
    if profile.refusals:
        name = f"{profile.name} " if seen else ""
        out.print(Text.assemble("NCCL of ", (shown(line), "bold"), f": {name}REFUSED"))
    else:
        _headline(profile, line)
    if seen:
        _print_profile(profile)
    print_problems(profile.refusals, "refused")


def _headline(profile: NcclProfile, line: str) -> None:
    word = f"NCCL {profile.version}" if profile.version else "NCCL of an unknown version"
    out.print(Text.assemble("NCCL of ", (shown(line), "bold"), f": {profile.name}, {word}"))


def _print_profile(profile: NcclProfile) -> None:
    table = unbroken("variable", "value", "because")
    for one in (*profile.variables, *profile.kept):
        where = f" ({one.where})" if one.where else ""
        table.add_row(one.name, Text(shown(one.value)), Text(shown(one.reason + where)))
    out.print(table)
    out.print()
    for node, names in profile.carrying.items():
        text = ", ".join(names) or "nothing over RDMA"
        out.print(f"{shown(node)} carries on: {shown(text)}", markup=False)
    for mount in profile.overlays:
        out.print(f"{shown(mount.node)} mounts {shown(mount.volume)}", markup=False)
    for text in profile.changes:
        out.print(f"note: {shown(text)}", markup=False)
