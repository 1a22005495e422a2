"""The nodes of a ring, from an inventory of a fleet: all of them, in rank order, as a ring."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.fabric.function import NodeFabric
from tetraspark.fabric.inventory_file import Inventory
from tetraspark.fabric.saved_file import OutputFile
from tetraspark.ring.degraded import Degraded
from tetraspark.ring.options import LostFunction, RingOptions
from tetraspark.ring.plan import is_plan


def ring_nodes(inventory: Inventory, options: RingOptions) -> tuple[list[NodeFabric], RingOptions]:
    """Return the fabrics in rank order, and the options with the devices that the site names.

    Raises UsageError for a site that is no ring, RunError for nodes that could not be looked at:
    a plan for the others would be none.
    """
    if inventory.topology != "ring":
        seen = f'topology = "{inventory.topology}"'
        wanted = 'topology = "ring" in [fabric]'
        raise UsageError(Problem(f"line {inventory.line}", seen, wanted, "correct the site file"))
    if inventory.unseen:
        raise RunError(*inventory.absences.values())
    fabrics = [inventory.fabrics[node] for node in inventory.nodes]
    return fabrics, replace(options, devices=dict(inventory.devices))


def parse_lost_function(text: str) -> LostFunction:
    """Parse `NODE:DEVICE`. Raises UsageError."""
    node, colon, device = text.partition(":")
    if not (node and colon and device):
        fix = "--lost-function spark1:enp1s0f0np0"
        raise UsageError(Problem("--lost-function", repr(text), "NODE:DEVICE", fix))
    return LostFunction(node, device)


def write_degraded(plans: Sequence[Degraded], folder: Path) -> list[Path]:
    """Write a plan file for every loss that there is a plan for. Raises UsageError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        seen, wanted = error.strerror or str(error), "a folder for the plans"
        raise UsageError(Problem(str(folder), seen, wanted, "another --degraded")) from error
    written = []
    for one in plans:
        if one.plan is not None:
            file = folder / f"{one.lost.replace(' ', '-').replace(':', '-')}.json"
            plan_file(file, "--degraded").write(one.plan.text())
            written.append(file)
    return written


def plan_file(path: Path, option: str) -> OutputFile:
    """Return the file that an option names for a plan."""
    return OutputFile(path, option, "a plan of a ring", is_plan)
