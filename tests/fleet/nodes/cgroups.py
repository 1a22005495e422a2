"""Cgroups of the nodes: below this process's own, in every hierarchy but memory."""

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Hierarchy:
    """A mounted hierarchy: its controllers (`cgroup2` for the unified one), our folder in it."""

    controllers: str
    folder: Path


def hierarchies(cgroup: str, mountinfo: str) -> list[Hierarchy]:
    """Return the hierarchies to make nodes' cgroups in, from two files of /proc/self.

    The memory controller is left alone: nodes stay within the limits of whoever started them.
    """
    own = {}
    for line in cgroup.splitlines():
        _, controllers, path = line.split(":", 2)
        own[controllers] = path
    first, unified = [], []
    for line in mountinfo.splitlines():
        left, right = line.split(" - ")
        root, point = left.split()[3:5]
        kind, _, options = right.split()[:3]
        for controllers, path in own.items():
            folder = Path(os.path.normpath(f"{point}/{os.path.relpath(path, root)}"))
            if kind == "cgroup2" and not controllers:
                unified.append(Hierarchy("cgroup2", folder))
            elif kind == "cgroup" and controllers and _mounts(controllers, options):
                first.append(Hierarchy(controllers, folder))
    return first or unified


def _mounts(controllers: str, options: str) -> bool:
    names = set(controllers.split(","))
    return names <= set(options.split(",")) and "memory" not in names


def own_hierarchies() -> list[Hierarchy]:
    """Return the hierarchies of this machine that nodes can use."""
    proc = Path("/proc/self")
    return hierarchies((proc / "cgroup").read_text(), (proc / "mountinfo").read_text())


def make(folder: Path) -> None:
    """Make a cgroup; the first version's cpuset wants its values before any process."""
    folder.mkdir(parents=True)
    for name in ("cpuset.cpus", "cpuset.mems"):
        for level in (folder.parent, folder):
            file, above = level / name, level.parent / name
            if file.exists() and above.exists():
                file.write_text(above.read_text())


def remove(folder: Path, seconds: float = 10.0) -> None:
    """Remove a tree of cgroups; processes that are just ending get a moment."""
    deadline = time.monotonic() + seconds
    while folder.is_dir():
        for path, _, _ in os.walk(folder, topdown=False):
            with contextlib.suppress(OSError):
                Path(path).rmdir()
        if time.monotonic() > deadline:
            raise TimeoutError(f"cgroup {folder} is still in use")
        time.sleep(0.02)
