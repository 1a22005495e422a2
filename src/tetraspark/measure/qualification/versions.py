"""Kernel, GPU driver and firmware of every node, as a receipt binds them. Reads only."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase

from tetraspark.errors import RunError
from tetraspark.fleet.command import NodeRunner
from tetraspark.fleet.facts import Facts, Wanted
from tetraspark.fleet.inside.look import look
from tetraspark.fleet.probe import probe_all

BOARD = "/sys/class/dmi/id/bios_version"
NIC = "/sys/class/infiniband/*/fw_ver"
WANTED = Wanted(
    files=(BOARD, NIC),
    commands={
        "kernel": ("uname", "-r"),
        "driver": ("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"),
    },
)


@dataclass(frozen=True)
class Versions:
    """Of one node; None where a version was not seen, and `error` where the node was not.

    `nics` are the firmware of RDMA devices by name.
    """

    node: str
    kernel: str | None = None
    driver: str | None = None
    board: str | None = None
    nics: Mapping[str, str] | None = None
    error: str | None = None

    def as_dict(self) -> dict[str, object]:
        """Return the fields, for the receipt."""
        return asdict(self)


def read_versions(facts: Facts) -> Versions:
    """Return the versions that a probe of WANTED, and maybe of more, found. Pure."""
    nics = {
        path.split("/")[-2]: text.strip()
        for path, text in facts.files.items()
        if fnmatchcase(path, NIC)
    }
    return Versions(
        node=facts.node,
        kernel=_said(facts, "kernel"),
        driver=_said(facts, "driver"),
        board=facts.files.get(BOARD, "").strip() or None,
        nics=dict(sorted(nics.items())),
    )


def versions_here(node: str) -> Versions:
    """Return those of this machine."""
    return read_versions(Facts.of(node, look(asdict(WANTED))))


def versions_of(runner: NodeRunner, nodes: tuple[str, ...]) -> tuple[Versions, ...]:
    """Return those of nodes, all looked at together."""
    found = probe_all(runner, dict.fromkeys(nodes, WANTED))
    return tuple(
        Versions(node, error=one.problems[0].seen)
        if isinstance(one, RunError)
        else read_versions(one)
        for node, one in found.items()
    )


def _said(facts: Facts, name: str) -> str | None:
    said = facts.commands.get(name)
    if said is None or said.rc:
        return None
    return next((line.strip() for line in said.stdout.splitlines() if line.strip()), None)
