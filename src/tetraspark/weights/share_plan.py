"""What is to be done for NFS: on the server as root, and a docker volume on each worker. Pure."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tetraspark.doctor.check import Check
from tetraspark.fleet.facts import Facts, Said, Wanted
from tetraspark.site.schema import Site
from tetraspark.weights.checkpoint import wanted
from tetraspark.weights.exports import Export, admits
from tetraspark.weights.folder import folder_of
from tetraspark.weights.mount import NfsVolume, export_path, nfs_volume, volume_name
from tetraspark.weights.mounted import MOUNTINFO, mount_of
from tetraspark.weights.place import Place
from tetraspark.weights.volume import inspect_words, parse_volume, volume_check

VOLUME, ADDRESSES, ROUTE = "weights volume", "addresses", "route to the NFS server"
FSTAB, EXPORTFS = "/etc/fstab", "/usr/sbin/exportfs"


@dataclass(frozen=True)
class Step:
    """A command on a node, what goes into its stdin, and how to undo it."""

    node: str
    words: tuple[str, ...]
    undo: str
    stdin: str = ""

    @property
    def shown(self) -> str:
        """The command as a line for a shell."""
        words = shlex.join(self.words)
        return f"echo {shlex.quote(self.stdin.strip())} | {words}" if self.stdin else words

    def as_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        return {**vars(self), "words": list(self.words)}


@dataclass(frozen=True)
class SharePlan:
    """The export, whose server is the head or a machine that is none of ours, and the steps."""

    export: Export
    by_head: bool
    steps: tuple[Step, ...]
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing that was found stands against the steps."""
        return all(check.verdict == "ok" for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        return {
            "ok": self.ok,
            "export": {**vars(self.export), "clients": list(self.export.clients)},
            "exports_file": {"path": self.export.file, "text": self.export.text},
            "by_head": self.by_head,
            "steps": [step.as_dict() for step in self.steps],
            "checks": [check.as_dict() for check in self.checks],
        }


def wanted_on(site: Site, place: Place, node: str) -> Wanted:
    """Return what a probe is to look at on a node."""
    planned = nfs_volume(site, place.nodes.index(node))
    volume = Wanted(commands={VOLUME: inspect_words(volume_name(site))})
    if planned is not None:
        return volume | Wanted(commands={ROUTE: ("ip", "-j", "route", "get", planned.server)})
    files = (MOUNTINFO, FSTAB, "/etc/exports.d/tetraspark-*.exports")
    server = Wanted(files=files, sizes=(EXPORTFS,), commands={ADDRESSES: ("ip", "-j", "addr")})
    return volume | server | wanted(place.path)


def share_plan(site: Site, place: Place, facts: Mapping[str, Facts]) -> SharePlan:
    """Return the steps that are still to be done, in order, and what was found on the way.

    The server's own are planned where it is the head; elsewhere they are a person's.
    """
    head = facts[place.head]
    volumes = {node: nfs_volume(site, rank) for rank, node in enumerate(place.nodes)}
    planned = {node: one for node, one in volumes.items() if one is not None}
    clients = _clients(site, planned)
    export = Export(place.line, folder_of(place.path, head), export_path(site), clients, head.uid)
    by_head = _is_head(head, planned) if place.head not in planned else False
    steps, checks = _server(export, head) if by_head else ([], [])
    for node, volume in planned.items():
        said = facts[node].commands[VOLUME]
        check = volume_check(node, volume, volume.name, said, place.mode)
        absent = check.verdict == "failed" and _absent(said)
        if absent:
            steps.append(Step(node, volume.create, f"docker volume rm {volume.name}"))
        else:
            checks.append(check)
        checks += _admitted(node, volume, clients, facts[node].commands[ROUTE])
    return SharePlan(export, by_head, tuple(steps), tuple(checks))


def removal(site: Site, place: Place, facts: Mapping[str, Facts]) -> tuple[Step, ...]:
    """Return the steps that remove the volumes that were made for this line, and no others."""
    name = volume_name(site)
    found = {node: _ours(one.commands[VOLUME], place.line) for node, one in facts.items()}
    undo = "tetraspark weights share --apply, with weights.mode nfs"
    return tuple(
        Step(node, ("docker", "volume", "rm", name), undo) for node, ours in found.items() if ours
    )


def _server(export: Export, head: Facts) -> tuple[list[Step], list[Check]]:
    name = "WEIGHTS.NFS_SERVER"
    wanted = f"an NFS server on {head.node} that exports {export.path}"
    if not head.sizes.get(EXPORTFS):
        fix = f"on {head.node}: sudo apt-get install nfs-kernel-server; then run this again"
        return [], [Check(name, head.node, "failed", f"no {EXPORTFS}", wanted, fix)]
    sudo = () if head.uid == 0 else ("sudo", "-n")
    steps = []

    def add(*words: str, undo: str, stdin: str = "") -> None:
        steps.append(Step(head.node, (*sudo, *words), undo, stdin))

    if export.path != export.folder:
        mount = mount_of(head.files.get(MOUNTINFO, ""), export.path)
        if mount is None or mount.point != export.path:
            add("mkdir", "-p", export.path, undo=f"sudo rmdir {export.path}")
            undo = f"sudo umount {export.path}"
            add("mount", "--bind", export.folder, export.path, undo=undo)
        if export.fstab not in head.files.get(FSTAB, ""):
            undo = f"remove this line from {FSTAB}: {export.fstab.strip()}"
            add("tee", "-a", FSTAB, undo=undo, stdin=export.fstab)
    if head.files.get(export.file) != export.text:
        add("mkdir", "-p", "/etc/exports.d", undo="")
        undo = f"sudo rm {export.file}; sudo exportfs -ra"
        add("tee", export.file, undo=undo, stdin=export.text)
        add("exportfs", "-ra", undo="")
    seen = "to be done" if steps else f"{export.path} is exported by {export.file}"
    return steps, [] if steps else [Check(name, head.node, "ok", seen, wanted)]


def _clients(site: Site, planned: Mapping[str, NfsVolume]) -> tuple[str, ...]:
    named = site.weights.nfs_clients if site.weights else None
    hosts = (node.host for node in site.nodes if node.name in planned and node.host)
    return named or tuple(hosts)


def _is_head(head: Facts, planned: Mapping[str, NfsVolume]) -> bool:
    """Tell whether every server address is one of the head's."""
    try:
        links = json.loads(head.commands[ADDRESSES].stdout)
        own = {one["local"] for link in links for one in link.get("addr_info", ())}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False
    return all(volume.server in own for volume in planned.values())


def _admitted(node: str, volume: NfsVolume, clients: tuple[str, ...], said: Said) -> list[Check]:
    """Check that the address a worker comes from is one that the server admits."""
    try:
        source = json.loads(said.stdout)[0]["prefsrc"]
        admitted = admits(clients, source)
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return []
    wanted = f"an address that weights.nfs_clients admits: {', '.join(clients)}"
    seen = f"{node} reaches {volume.server} from {source}"
    if admitted is False:
        fix = f'add "{source}" to weights.nfs_clients'
        return [Check("WEIGHTS.NFS_CLIENT", node, "failed", seen, wanted, fix)]
    return [Check("WEIGHTS.NFS_CLIENT", node, "ok", seen, wanted)] if admitted else []


def _absent(said: Said) -> bool:
    try:
        return parse_volume(said) is None
    except ValueError:
        return False


def _ours(said: Said, line: str) -> bool:
    try:
        found = parse_volume(said)
    except ValueError:
        return False
    return found is not None and found.line == line
