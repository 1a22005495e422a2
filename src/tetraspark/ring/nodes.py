"""The nodes of a ring, from an inventory of a fleet: all of them, in rank order, as a ring."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.fabric.function import NodeFabric
from tetraspark.fabric.inventory_file import Inventory
from tetraspark.ring.degraded import Degraded
from tetraspark.ring.options import LostFunction, RingOptions


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
        raise RunError(
            *(
                Problem(node, why, "an answer from every node", "tetraspark fabric show")
                for node, why in inventory.unseen.items()
            )
        )
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
    """Write a plan file for every loss that there is a plan for. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for one in plans:
        if one.plan is not None:
            file = folder / f"{one.lost.replace(' ', '-').replace(':', '-')}.json"
            file.write_text(one.plan.text(), encoding="utf-8")
            written.append(file)
    return written
