"""Where the weights of a fleet are, node by node, without reading them: names, sizes, mounts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tetraspark.doctor.check import Check
from tetraspark.errors import RunError
from tetraspark.fleet.command import NodeRunner
from tetraspark.fleet.facts import Facts, Wanted
from tetraspark.fleet.probe import probe_all
from tetraspark.site.schema import Site
from tetraspark.weights.checkpoint import checkpoint_checks, wanted
from tetraspark.weights.folder import Checkpoint, read_checkpoint
from tetraspark.weights.mount import NfsVolume, nfs_volume, volume_name
from tetraspark.weights.mounted import MOUNTINFO, Mount, mount_of
from tetraspark.weights.node_program import Observe, Progress
from tetraspark.weights.place import Place
from tetraspark.weights.receipt import Receipt
from tetraspark.weights.volume import inspect_words, volume_check

VOLUME = "weights volume"


@dataclass(frozen=True)
class NodeWeights:
    """The weights on one node: its folder, or the volume that it mounts; and the checks.

    `verified` is when the files were found as in the receipt (Unix seconds), with `changed` when
    their sizes are others now.
    """

    node: str
    holder: bool
    folder: str
    present: int
    total: int
    bytes: int
    missing: tuple[str, ...]
    mount: Mount | None
    volume: NfsVolume | None
    verified: float | None
    tree: str | None
    changed: bool
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether no check failed, and each could be made."""
        return all(check.verdict in ("ok", "warning") for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        return {
            "node": self.node,
            "ok": self.ok,
            "holder": self.holder,
            "folder": self.folder,
            "present": self.present,
            "total": self.total,
            "bytes": self.bytes,
            "missing": list(self.missing),
            "mount": vars(self.mount) if self.mount else None,
            "volume": {**vars(self.volume), "options": self.volume.options}
            if self.volume
            else None,
            "verified": self.verified,
            "tree": self.tree,
            "changed": self.changed,
            "checks": [check.as_dict() for check in self.checks],
        }


def wanted_on(site: Site, place: Place, node: str) -> Wanted:
    """Return what a probe is to look at on a node."""
    look = Wanted(files=(MOUNTINFO,), commands={VOLUME: inspect_words(volume_name(site))})
    return look | wanted(place.path) if node in place.holders else look


def read_status(
    site: Site, place: Place, runner: NodeRunner, receipt: Receipt | None, observe: Observe
) -> dict[str, NodeWeights | RunError]:
    """Look at every node at once; one that cannot be looked at gives its error."""
    for node in place.nodes:
        observe(Progress(node, "look"))
    found = probe_all(runner, {node: wanted_on(site, place, node) for node in place.nodes})
    return {
        node: facts if isinstance(facts, RunError) else node_weights(site, place, facts, receipt)
        for node, facts in found.items()
    }


def node_weights(site: Site, place: Place, facts: Facts, receipt: Receipt | None) -> NodeWeights:
    """Return what the facts say of one node's weights."""
    rank = place.nodes.index(facts.node)
    planned = nfs_volume(site, rank)
    said = facts.commands[VOLUME]
    volume = volume_check(facts.node, planned, volume_name(site), said, place.mode)
    checkpoint = read_checkpoint(place.path, facts)
    holder = facts.node in place.holders
    checks = checkpoint_checks(facts.node, place.path, facts) if holder else []
    # a node without Docker is no fault of a folder that is there
    if planned is not None or volume.verdict == "failed":
        checks.append(volume)
    verified = receipt.nodes.get(facts.node) if receipt and holder else None
    where = facts.links.get(checkpoint.folder, checkpoint.folder)
    return NodeWeights(
        node=facts.node,
        holder=holder,
        folder=checkpoint.folder,
        present=len(checkpoint.sizes),
        total=len(checkpoint.sizes.keys() | set(checkpoint.missing)),
        bytes=sum(checkpoint.sizes.values()),
        missing=checkpoint.missing,
        mount=mount_of(facts.files.get(MOUNTINFO, ""), where) if holder else None,
        volume=planned,
        verified=verified.time if verified and verified.folder == checkpoint.folder else None,
        tree=receipt.tree if verified and receipt else None,
        changed=bool(verified and receipt) and _changed(checkpoint, receipt),
        checks=tuple(checks),
    )


def _changed(checkpoint: Checkpoint, receipt: Receipt | None) -> bool:
    """Tell whether a file of the folder itself has another size than in the receipt."""
    sizes: Mapping[str, int] = receipt.sizes if receipt else {}
    here = {name: size for name, size in sizes.items() if "/" not in name}
    return any(checkpoint.sizes.get(name) != size for name, size in here.items())
