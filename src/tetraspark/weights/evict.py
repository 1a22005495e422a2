"""Give the page cache of the checkpoint back before a load, so that the load has free memory.

On a machine whose GPU uses the same memory, an allocation counts free pages alone: a checkpoint
that was read or copied before fills them with its cache, and the load dies near its end.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tetraspark.errors import Problem, RunError
from tetraspark.fleet.command import NodeRunner
from tetraspark.weights.each_node import on_each
from tetraspark.weights.node_program import Observe, Progress, run_program

EVICT_SECONDS = 600.0


@dataclass(frozen=True)
class Evicted:
    """What one node gave back: lines of /proc/meminfo before and after, in bytes."""

    node: str
    folder: str
    files: int
    bytes: int
    before: Mapping[str, int]
    after: Mapping[str, int]

    @property
    def freed(self) -> int:
        """How much more is free, in bytes; below 0 when other programs took more meanwhile."""
        return self.after["MemFree"] - self.before["MemFree"]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, for `--json`."""
        return {**asdict(self), "freed": self.freed}


def evict(
    path: str, runner: NodeRunner, nodes: Collection[str], observe: Observe
) -> dict[str, Evicted | RunError]:
    """Evict the checkpoint's files from the page cache of each node, as the login there."""

    def one(node: str) -> Evicted:
        observe(Progress(node, "evict"))
        found = run_program(runner, node, "evict", {"folder": path}, EVICT_SECONDS)
        problems = list(_problems(node, found))
        if problems:
            raise RunError(*problems)
        observe(Progress(node, "done"))
        fields = ("folder", "files", "bytes", "before", "after")
        return Evicted(node, **{name: found[name] for name in fields})

    return on_each(runner, nodes, one)


def _problems(node: str, found: Mapping[str, Any]) -> list[Problem]:
    folder = found["folder"]
    if not found["exists"]:
        fix = f"tetraspark weights status; on {node}: ls -d {folder}"
        return [Problem(f"{node} {folder}", "no such folder", "the checkpoint's folder", fix)]
    return [
        Problem(
            f"{node} {path}", seen, "a file that the login can read", f"on {node}: ls -l {path}"
        )
        for path, seen in found["errors"].items()
    ]
