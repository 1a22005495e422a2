"""What `pack` does on each node, as a value. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tetraspark.engram.layout import Split, read_tables
from tetraspark.engram.request import Mode, Slice, request, slices

PYTHON: tuple[str, ...] = ("python3", "-I", "-")
HERE = "this machine"


@dataclass(frozen=True)
class NodePack:
    """One rank's shards: where they go and come from as `argv`, which gets the program, sees it.

    `before` are commands that must succeed first. `there` are bytes by shard that are packed
    already, `free` those of the folder's file system; what is unknown is left out. `again` is the
    command that packs these shards, and no others.
    """

    node: str
    rank: int
    folder: str
    shards: tuple[Slice, ...]
    request: Mapping[str, Any]
    argv: tuple[str, ...] = PYTHON
    before: tuple[tuple[str, ...], ...] = ()
    there: Mapping[str, int] | None = None
    free: int | None = None
    again: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return it for `--json`."""
        return {
            "node": self.node,
            "rank": self.rank,
            "folder": self.folder,
            "free_bytes": self.free,
            "before": [list(argv) for argv in self.before],
            "argv": list(self.argv),
            "shards": [
                {
                    "file": f"{one.name}.bin",
                    "layer": one.table.layer,
                    "rows": list(one.rows),
                    "bytes": one.bytes,
                    "there_bytes": (self.there or {}).get(one.name),
                }
                for one in self.shards
            ],
        }


@dataclass(frozen=True)
class PackPlan:
    """The nodes' parts, in rank order, and how the tables are divided."""

    mode: Mode
    split: Split
    nodes: tuple[NodePack, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it for `--json`."""
        nodes = [node.as_dict() for node in self.nodes]
        return {"mode": self.mode, "split": self.split, "nodes": nodes}


def local_plan(
    text: str, model: str, folder: str, rank: int, tp: int, split: Split, mode: Mode, replace: bool
) -> PackPlan:
    """Plan one rank's shards on this machine; `text` is the checkpoint's config.json.

    Raises ValueError for a config without Engram tables and for a rank that there is not.
    """
    shards = slices(read_tables(text), rank, tp, split)
    asked = request(mode, model, folder, shards, replace=replace)
    again = (
        *("tetraspark", "pack", "--local", model, "--out", folder),
        *("--rank", str(rank), "--tp", str(tp), "--split", split),
    )
    return PackPlan(mode, split, (NodePack(HERE, rank, folder, shards, asked, again=again),))
