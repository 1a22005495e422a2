"""The inventory of a fleet as a file: what `fabric show --json` prints and `--from` reads."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from tetraspark.doctor.check import Check
from tetraspark.errors import Problem, UsageError
from tetraspark.fabric.cabling import Cabling
from tetraspark.fabric.cabling_checks import SHOW, Topology
from tetraspark.fabric.cabling_read import read_cabling
from tetraspark.fabric.checks import fabric_checks
from tetraspark.fabric.function import NodeFabric
from tetraspark.fabric.saved_file import parse_json
from tetraspark.site.source import read_text

SCHEMA = "tetraspark.fabric/1"
FIX = "tetraspark fabric show --site SITE --json > FILE"


@dataclass(frozen=True)
class Inventory:
    """The fabric of a fleet at one moment.

    `nodes` is in rank order. `devices` are the RDMA devices that the site names, by node;
    `unseen` says why a node could not be looked at, and `fixes` what to do about it.

    Raises ValueError for a node that is neither seen nor unseen, and for a name that cannot be
    printed: names go into files and commands.
    """

    line: str
    topology: Topology
    nodes: tuple[str, ...]
    devices: Mapping[str, tuple[str, ...]]
    fabrics: Mapping[str, NodeFabric]
    unseen: Mapping[str, str]
    fixes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.nodes:
            raise ValueError("no node")
        for node in self.nodes:
            if node not in self.fabrics and node not in self.unseen:
                raise ValueError(f"{node!r} is in `nodes`, and in neither `fabrics` nor `unseen`")
            if self.nodes.count(node) > 1:
                raise ValueError(f"{node!r} is twice in `nodes`")
        for name in self._names():
            if not name.isprintable():
                raise ValueError(f"a name with characters that cannot be printed: {name!r}")

    def _names(self) -> Iterator[str]:
        yield from (*self.nodes, *self.devices, *self.fabrics, *self.unseen)
        for fabric in self.fabrics.values():
            yield fabric.node
            for one in fabric.functions:
                yield from (one.netdev, one.rdma or "")

    @property
    def cabling(self) -> Cabling:
        """How the nodes are joined."""
        return read_cabling(self.nodes, self.fabrics)

    @property
    def absences(self) -> dict[str, Problem]:
        """Why nodes could not be looked at, by node."""
        wanted = "an answer from every node"
        return {
            node: Problem(node, why, wanted, self.fixes.get(node) or SHOW)
            for node, why in self.unseen.items()
        }

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
    value = parse_json(read_text(path, "a saved inventory", FIX), str(path), SCHEMA, FIX)
    schema = value.get("schema") if isinstance(value, dict) else None
    if schema != SCHEMA:
        raise UsageError(Problem(str(path), f"schema {schema!r}", f"schema {SCHEMA!r}", FIX))
    try:
        return _ADAPTER.validate_python(value)
    except ValidationError as error:
        problems = [
            Problem(
                " ".join([str(path), ".".join(map(str, one["loc"]))]).rstrip(),
                one["msg"].removeprefix("Value error, "),
                *(SCHEMA, FIX),
            )
            for one in error.errors()
        ]
        raise UsageError(*problems) from error
