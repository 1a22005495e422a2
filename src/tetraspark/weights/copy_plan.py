"""What a copy from the head to the workers would send, and whether it fits and is wanted."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.fleet.command import NodeRunner
from tetraspark.fleet.facts import Facts, Wanted
from tetraspark.fleet.probe import probe
from tetraspark.site.load import LoadedSite
from tetraspark.weights.checkpoint import checkpoint_checks, wanted
from tetraspark.weights.each_node import on_each, parted
from tetraspark.weights.folder import escaped, folder_of, within
from tetraspark.weights.mounted import MOUNTINFO, mount_of
from tetraspark.weights.node_program import Observe, Progress
from tetraspark.weights.place import Place
from tetraspark.weights.route import Route, check_route, route_to
from tetraspark.weights.tally import Tally, take_tally

PARTIAL = ".tetraspark-partial"
"""The folder of a checkpoint in which files arrive, hidden from whoever loads it."""
WHOLE = ("CHECKPOINT.FOLDER", "CHECKPOINT.SHARDS", "CHECKPOINT.SIZE")
"""Checks that fail for a checkpoint that is not complete."""


@dataclass(frozen=True)
class Transfer:
    """What one worker lacks: `names`, `bytes` of them, `kept` of which arrived before.

    `same` have the size they should have, so their hashes decide. `free` is the room there.
    """

    route: Route
    source: str
    folder: str
    names: tuple[str, ...]
    bytes: int
    kept: int
    same: tuple[str, ...]
    free: int

    @property
    def node(self) -> str:
        """The worker."""
        return self.route.login.node

    @property
    def partial(self) -> str:
        """The folder that files arrive in."""
        return f"{self.folder}/{PARTIAL}"

    @property
    def rsync(self) -> tuple[str, ...]:
        """The command on the head."""
        return self.route.rsync(self.source, self.partial)

    def as_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        return {
            "node": self.node,
            "folder": self.folder,
            "send": list(self.names),
            "bytes": self.bytes,
            "kept": self.kept,
            "hash": list(self.same),
            "free": self.free,
            "command": list(self.rsync),
        }


@dataclass(frozen=True)
class CopyPlan:
    """The head's files, and each worker's transfer or why there can be none."""

    place: Place
    source: Tally
    transfers: Mapping[str, Transfer | RunError]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Why workers cannot be copied to."""
        return parted(self.transfers)[1]

    def as_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        size = sum(one.size for one in self.source.files.values())
        source = {"node": self.source.node, "folder": self.source.folder, "bytes": size}
        transfers = [one.as_dict() for one in parted(self.transfers)[0].values()]
        return {
            "ok": not self.problems,
            "head": {**source, "files": len(self.source.files)},
            "transfers": transfers,
            "problems": [problem.as_dict() for problem in self.problems],
        }


def plan_copy(
    loaded: LoadedSite, place: Place, runner: NodeRunner, workers: Collection[str], observe: Observe
) -> CopyPlan:
    """Look at the head and the workers, and plan. Changes nothing.

    Raises UsageError for a site of another mode, and RunError when the head's checkpoint is not
    there or not whole.
    """
    if place.mode != "copy":
        where, seen = loaded.origin("weights.mode").where, f'weights.mode = "{place.mode}"'
        fix = 'set mode = "copy", without the nfs_… keys'
        raise UsageError(Problem(where, seen, 'mode = "copy" for `weights copy`', fix))
    source = _source(place, runner, observe)

    def one(node: str) -> Transfer:
        observe(Progress(node, "look"))
        route = route_to(loaded.site, node)
        check_route(runner, route)
        facts = probe(runner, node, _wanted(place.path))
        there = take_tally(runner, node, place.path, observe, hashed=False)
        observe(Progress(node, "looked"))
        return transfer_of(place, route, source, there, facts)

    return CopyPlan(place, source, on_each(runner, workers, one))


def transfer_of(place: Place, route: Route, source: Tally, there: Tally, facts: Facts) -> Transfer:
    """Return what a worker lacks. Raises RunError when it does not fit, or is another's disk."""
    folder = folder_of(place.path, facts)
    _own_disk(folder, facts)
    partial = within(f"{folder}/{PARTIAL}", facts.sizes)
    sizes = {name: one.size for name, one in source.files.items()}
    names = [name for name, size in sizes.items()
             if name not in there.files or there.files[name].size != size]  # fmt: skip
    transfer = Transfer(
        route=route,
        source=source.folder,
        folder=folder,
        names=tuple(names),
        bytes=sum(sizes[name] for name in names),
        kept=sum(min(partial.get(name, 0), sizes[name]) for name in names),
        same=tuple(name for name in sizes if name not in names),
        free=facts.space[place.path].free,
    )
    lacking = transfer.bytes - transfer.kept - transfer.free
    if lacking > 0:
        seen = f"{transfer.free} bytes free on {facts.space[place.path].path}"
        needed = f"{transfer.bytes - transfer.kept} bytes: {len(names)} files"
        fix = f"make room for {lacking} bytes: ssh {route.login} df -h {folder}"
        raise RunError(Problem(f"{facts.node} {folder}", seen, needed, fix))
    return transfer


def _source(place: Place, runner: NodeRunner, observe: Observe) -> Tally:
    observe(Progress(place.head, "look"))
    facts = probe(runner, place.head, wanted(place.path))
    checks = checkpoint_checks(place.head, place.path, facts)
    broken = [check.problem for check in checks if check.id in WHOLE and check.verdict == "failed"]
    if broken:
        raise RunError(*broken)
    found = take_tally(runner, place.head, place.path, observe, hashed=False)
    observe(Progress(place.head, "looked"))
    return found


def _wanted(path: str) -> Wanted:
    partial = (f"{escaped(path)}/{PARTIAL}/*",)
    return Wanted(files=(MOUNTINFO,), links=(escaped(path),), sizes=partial, space=(path,))


def _own_disk(folder: str, facts: Facts) -> None:
    """Refuse a folder on another machine: the head's own may be mounted there."""
    mount = mount_of(facts.files.get(MOUNTINFO, ""), facts.links.get(folder, folder))
    if mount is not None and mount.remote:
        where = f"{facts.node} {folder}"
        seen = f"{mount.point} is mounted from {mount.source} ({mount.kind})"
        fix = f"on {facts.node}: sudo umount {mount.point}; or set weights.mode"
        raise RunError(Problem(where, seen, "a folder on the node's own disk", fix))
