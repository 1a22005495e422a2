"""The GPU of a node, from nvidia-smi; on GB10 it has no numbers for memory."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass

from tetraspark.doctor.finding import Finding
from tetraspark.doctor.node_view import NodeView
from tetraspark.fleet.facts import Said, Wanted

FIELDS = "index,name,driver_version,memory.total,memory.free"
PRESENT = Wanted(commands={"gpus": ("nvidia-smi", f"--query-gpu={FIELDS}", "--format=csv")})
IDLE = Wanted(
    commands={
        "gpu processes": (
            *("nvidia-smi", "--query-compute-apps=pid,process_name,used_memory"),
            "--format=csv",
        )
    }
)
# Everything of a desktop session that may hold a context and serves no model.
DESKTOP = ("Xorg", "gnome-shell", "Xwayland")


@dataclass(frozen=True)
class Gpu:
    """A GPU; memory in MiB, None where nvidia-smi shows none (`[N/A]`, `Not Supported`)."""

    name: str
    driver: str
    total: int | None
    free: int | None


def mebibytes(text: str) -> int | None:
    """Return a number of nvidia-smi such as `19135 MiB`, or None where there is none."""
    word = text.strip().split(" ")[0]
    return int(word) if word.isdecimal() and len(word) < 19 else None


def rows(said: Said, columns: int) -> list[list[str]] | None:
    """Return the rows of a table of nvidia-smi without its head, or None for anything else."""
    if said.rc:
        return None
    table = [[cell.strip() for cell in row] for row in csv.reader(said.stdout.splitlines()) if row]
    if not table or any(len(row) != columns for row in table):
        return None
    return table[1:]


def gpus(view: NodeView) -> list[Gpu] | None:
    """Return the GPUs of a node, or None where nvidia-smi does not tell."""
    found = rows(view.said("gpus"), len(FIELDS.split(",")))
    if found is None:
        return None
    return [Gpu(row[1], row[2], mebibytes(row[3]), mebibytes(row[4])) for row in found]


def present(view: NodeView) -> Iterator[Finding]:
    """Judge whether there is a GPU that the driver can reach."""
    wanted, found, said = "one GPU and its driver", gpus(view), view.said("gpus")
    fix = f"{view.shell('nvidia-smi')}; sudo apt-get install nvidia-driver, then reboot"
    if said.rc == 124:
        yield Finding("unknown", f"nvidia-smi: {said.stderr}", wanted, view.shell("nvidia-smi"))
    elif not found:
        yield Finding("failed", _words(said) or "no GPU", wanted, fix)
    else:
        yield Finding("ok", "; ".join(_told(gpu) for gpu in found), wanted)


def _told(gpu: Gpu) -> str:
    memory = "memory unknown to nvidia-smi" if gpu.total is None else f"{gpu.total} MiB"
    return f"{gpu.name}, driver {gpu.driver}, {memory}"


def _words(said: Said) -> str:
    lines = (said.stderr.strip() or said.stdout.strip()).splitlines()
    return lines[-1][:200] if lines else ""


def idle(view: NodeView) -> Iterator[Finding]:
    """Judge whether anything computes on the GPU already."""
    wanted, said = "no process that computes on the GPU", view.said("gpu processes")
    found = rows(said, 3)
    if found is None:
        seen = _words(said) or "not what nvidia-smi prints"
        yield Finding("unknown", seen, wanted, view.shell("nvidia-smi"))
        return
    busy = [row for row in found if row[1].rsplit("/", 1)[-1] not in DESKTOP]
    if not busy:
        yield Finding("ok", "idle", wanted)
        return
    seen = "; ".join(f"pid {pid} ({name}), {used}" for pid, name, used in busy[:4])
    fix = f"tetraspark stop, or end it: {view.shell(f'ps -fp {busy[0][0]}')}"
    yield Finding("failed", seen, wanted, fix)
