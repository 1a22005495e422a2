"""The inventory that ships as an example, made by the model: `python -m tests.fabric.example`."""

import json
from pathlib import Path

from tests.fabric.model import NAMES
from tests.fabric.sparks import ring
from tetraspark.fabric.inventory_file import Inventory

FILE = Path(__file__).parents[2] / "sites" / "four-sparks-ring.fabric.json"
DEVICES = ("rocep1s0f0", "roceP2p1s0f0", "rocep1s0f1", "roceP2p1s0f1")


def inventory() -> Inventory:
    """Four Sparks in a ring, each cage and function addressed, nothing wrong."""
    return Inventory(
        line="four-sparks-ring",
        topology="ring",
        nodes=NAMES,
        devices=dict.fromkeys(NAMES, DEVICES),
        fabrics={name: ring().fabric(name) for name in NAMES},
        unseen={},
    )


def text() -> str:
    """The file as it ships."""
    return json.dumps(inventory().as_dict(), indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
