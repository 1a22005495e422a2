"""The inventory of a fleet as a file: what `fabric show --json` prints and `--from` reads."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from tetraspark.doctor.check import Check
from tetraspark.errors import Problem, UsageError
from tetraspark.fabric.cabling import Cabling
from tetraspark.fabric.cabling_checks import Topology
from tetraspark.fabric.cabling_read import read_cabling
from tetraspark.fabric.checks import fabric_checks
from tetraspark.fabric.function import NodeFabric

SCHEMA = "tetraspark.fabric/1"
FIX = "tetraspark fabric show --site SITE --json > FILE"


@dataclass(frozen=True)
class Inventory:
    """The fabric of a fleet at one moment.

    `nodes` is in rank order. `devices` are the RDMA devices that the site names, by node;
    `unseen` says why a node could not be looked at.
    """

    line: str
    topology: Topology
    nodes: tuple[str, ...]
    devices: Mapping[str, tuple[str, ...]]
    fabrics: Mapping[str, NodeFabric]
    unseen: Mapping[str, str]

    @property
    def cabling(self) -> Cabling:
        """How the nodes are joined."""
        return read_cabling(self.nodes, self.fabrics)

    @property
    def checks(self) -> list[Check]:
        """What is right and wrong with it."""
        return fabric_checks(self.nodes, self.fabrics, self.topology, self.devices)

    def as_dict(self) -> dict[str, Any]:
        """Return what `--json` prints; `cabling` and `checks` follow from the rest."""
        cabling = self.cabling
        return {
            "schema": SCHEMA,
            **_ADAPTER.dump_python(self, mode="json"),
            "cabling": {
                "shape": cabling.shape,
                "order": cabling.order,
                "orientation": cabling.orientation,
                "complete": cabling.complete,
                "segments": [
                    {"ends": [str(end) for end in one.ends], "switch": one.switch, "how": one.how}
                    for one in cabling.segments
                ],
                "silent": [str(cage) for cage in cabling.silent],
            },
            "checks": [one.as_dict() for one in self.checks],
        }


_ADAPTER = TypeAdapter(Inventory)


def load_inventory(path: Path) -> Inventory:
    """Read a saved inventory. Raises UsageError for a file that is none."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        seen = error.strerror or str(error)
        raise UsageError(Problem(str(path), seen, "a saved inventory", FIX)) from error
    except ValueError as error:
        raise UsageError(Problem(str(path), f"not JSON: {error}", SCHEMA, FIX)) from error
    schema = value.get("schema") if isinstance(value, dict) else None
    if schema != SCHEMA:
        raise UsageError(Problem(str(path), f"schema {schema!r}", f"schema {SCHEMA!r}", FIX))
    try:
        return _ADAPTER.validate_python(value)
    except ValidationError as error:
        problems = [
            Problem(f"{path} {'.'.join(map(str, one['loc']))}", one["msg"], SCHEMA, FIX)
            for one in error.errors()
        ]
        raise UsageError(*problems) from error
