"""The files of a checkpoint on one node, with sizes and, where wanted, sha256."""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Self

from tetraspark.fleet.command import NodeRunner
from tetraspark.weights.node_program import Observe, Progress, run_program

HASH_SECONDS = 4 * 3600.0


@dataclass(frozen=True)
class FileSum:
    """A file: its size in bytes, its sha256 in hex where it was hashed, or why it could not be."""

    size: int
    sha256: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class Tally:
    """What a node has, by name below the folder; `cached` files were hashed before."""

    node: str
    folder: str
    exists: bool
    files: Mapping[str, FileSum]
    cached: int = 0

    @classmethod
    def of(cls, node: str, found: Mapping[str, Any]) -> Self:
        """Return what `inside/tally.py` printed."""
        files = {name: FileSum(**one) for name, one in found["files"].items()}
        return cls(node, found["folder"], found["exists"], files, found["cached"])

    @property
    def sums(self) -> dict[str, str]:
        """The hash of each file that has one."""
        return {name: one.sha256 for name, one in self.files.items() if one.sha256 is not None}


def take_tally(
    runner: NodeRunner,
    node: str,
    folder: str,
    observe: Observe,
    names: Collection[str] | None = None,
    hashed: bool = True,
    full: bool = False,
) -> Tally:
    """List a node's folder, or only the named files of it, and hash them.

    A hash that was computed before is taken for a file whose size, time and inode are the same,
    unless `full`. Raises RunError when the node cannot be asked.
    """

    def tell(line: dict[str, Any]) -> None:
        observe(Progress(node, "hash", line["done"], line["total"], line["text"]))

    wanted = None if names is None else sorted(names)
    request = {"folder": folder, "names": wanted, "hash": hashed, "full": full}
    return Tally.of(node, run_program(runner, node, "tally", request, HASH_SECONDS, tell))


def tree_sha256(sums: Mapping[str, str]) -> str:
    """Return one hash of all files: of the lines that `sha256sum` prints, in the order of names."""
    lines = "".join(f"{sums[name]}  {name}\n" for name in sorted(sums))
    return hashlib.sha256(lines.encode()).hexdigest()
