"""Hash the checkpoint on every node, and compare the nodes with a reference and each other."""

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tetraspark.errors import Problem
from tetraspark.fleet.command import NodeRunner
from tetraspark.fleet.state_home import require_writable
from tetraspark.weights.compare import Reference, differences, extra, unreadable
from tetraspark.weights.each_node import on_each, parted
from tetraspark.weights.node_program import Observe
from tetraspark.weights.place import Place
from tetraspark.weights.receipt import Receipt, read_receipt, write_receipt
from tetraspark.weights.tally import Tally, take_tally, tree_sha256


@dataclass(frozen=True)
class Wish:
    """How to verify: without earlier hashes, against a file of sums, with a new receipt."""

    full: bool = False
    sums: Reference | None = None
    renew: bool = False


@dataclass(frozen=True)
class Verification:
    """What each node has, and everything that is wrong, node by node.

    `reference` is whose hashes were compared with. `recorded` when the receipt was written.
    """

    tallies: Mapping[str, Tally]
    problems: tuple[Problem, ...]
    reference: str
    extra: Mapping[str, list[str]]
    recorded: bool

    @property
    def ok(self) -> bool:
        """Whether every node has every file as it should be."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        nodes = {
            node: {
                "folder": tally.folder,
                "files": len(tally.files),
                "bytes": sum(one.size for one in tally.files.values()),
                "cached": tally.cached,
                "tree": tree_sha256(tally.sums),
                "extra": self.extra.get(node, []),
            }
            for node, tally in self.tallies.items()
        }
        return {
            "ok": self.ok,
            "reference": self.reference,
            "recorded": self.recorded,
            "nodes": nodes,
            "problems": [problem.as_dict() for problem in self.problems],
        }


def verify(
    place: Place,
    runner: NodeRunner,
    receipt_path: Path,
    observe: Observe,
    wish: Wish,
    nodes: Collection[str],
) -> Verification:
    """Hash on `nodes` at once and compare; where all is right, write the receipt.

    A new receipt is made of what the head has, so without the head among `nodes` there is none.
    The reference is the file of sums, else the receipt, else what the head has. Raises UsageError
    where no receipt can be written, before anything is hashed.
    """
    require_writable(receipt_path.parent)
    before = None if wish.renew else read_receipt(receipt_path)

    def one(node: str) -> Tally:
        return take_tally(runner, node, place.path, observe, full=wish.full)

    tallies, errors = parted(on_each(runner, nodes, one))
    problems = [*errors, *(one for tally in tallies.values() for one in unreadable(tally))]
    references = _references(wish.sums, before, receipt_path, tallies, place.head)
    for reference in references:
        for node, tally in tallies.items():
            problems += differences(reference, tally, _fix(place, node, reference))
    recorded = not problems and (before is not None or place.head in tallies)
    if recorded:
        base = before or Receipt.of(place.path, tallies[place.head])
        folders = {node: tally.folder for node, tally in tallies.items()}
        write_receipt(receipt_path, base.verified(folders, time.time()))
    return Verification(
        tallies=tallies,
        problems=tuple(problems),
        reference=" and ".join(one.source for one in references) or "nothing",
        extra=extra(references[-1], tallies.values()) if references else {},
        recorded=recorded,
    )


def _references(
    sums: Reference | None,
    before: Receipt | None,
    path: Path,
    tallies: Mapping[str, Tally],
    head: str,
) -> list[Reference]:
    """Return what the nodes are compared with; a file of sums may name only some of the files."""
    found = [] if sums is None else [sums]
    if before is not None:
        return [*found, Reference(f"the receipt {path}", before.sums)]
    if tallies:
        first = tallies.get(head) or next(iter(tallies.values()))
        found.append(Reference(first.node, first.sums))
    return found


def _fix(place: Place, node: str, reference: Reference) -> str:
    if node == place.head or place.mode != "copy":
        again = f"download the file on {node} again, then: tetraspark weights verify"
        renewed = "; if the checkpoint is another one now: tetraspark weights verify --renew"
        return again + (renewed if reference.source.startswith("the receipt") else "")
    return f"tetraspark weights copy --node {node}"
