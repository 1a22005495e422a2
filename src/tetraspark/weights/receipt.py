"""The receipt of a checkpoint: the hash of each file, and when which node was found to have them.

It lies in the line's state folder, as weights.sha256.json.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from tetraspark.errors import Problem, RunError
from tetraspark.weights.tally import Tally, tree_sha256

NAME = "weights.sha256.json"


@dataclass(frozen=True)
class Verified:
    """A node that had every file as in the receipt: in which folder, and when (Unix seconds)."""

    folder: str
    time: float


@dataclass(frozen=True)
class Receipt:
    """Sizes in bytes and sha256 by file name, and the nodes that were verified."""

    model: str
    sizes: Mapping[str, int]
    sums: Mapping[str, str]
    nodes: Mapping[str, Verified]

    @property
    def tree(self) -> str:
        """The hash of all files."""
        return tree_sha256(self.sums)

    @classmethod
    def of(cls, model: str, tally: Tally) -> Self:
        """Return the receipt of what a node has."""
        sizes = {name: one.size for name, one in tally.files.items()}
        return cls(model, sizes, tally.sums, {})

    def verified(self, folders: Mapping[str, str], time: float) -> "Receipt":
        """Return the receipt with nodes that were found the same, each with its folder."""
        nodes = {node: Verified(folder, time) for node, folder in folders.items()}
        return Receipt(self.model, self.sizes, self.sums, {**self.nodes, **nodes})

    def as_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        files = {
            name: {"size": self.sizes[name], "sha256": self.sums[name]}
            for name in sorted(self.sums)
        }
        nodes = {node: asdict(one) for node, one in sorted(self.nodes.items())}
        return {"format": 1, "model": self.model, "tree": self.tree, "files": files, "nodes": nodes}


def read_receipt(path: Path) -> Receipt | None:
    """Return the receipt, or None where there is none. Raises RunError for a damaged one."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        files = value["files"]
        receipt = Receipt(
            value["model"],
            {name: int(one["size"]) for name, one in files.items()},
            {name: str(one["sha256"]) for name, one in files.items()},
            {node: Verified(**one) for node, one in value["nodes"].items()},
        )
        if value["format"] != 1 or value["tree"] != receipt.tree:
            raise ValueError("its tree hash is not that of its files")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        wanted, fix = "a receipt of `tetraspark weights verify`", f"rm {path}, then verify again"
        raise RunError(Problem(str(path), f"not readable: {error}", wanted, fix)) from error
    return receipt


def write_receipt(path: Path, receipt: Receipt) -> None:
    """Write the receipt, in one step for whoever reads it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_text(json.dumps(receipt.as_dict(), indent=1) + "\n", encoding="utf-8")
    part.replace(path)
