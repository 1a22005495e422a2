"""The libnccl of a line: what a patched one is mounted over, and which one a process has."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from tetraspark.errors import Problem, UsageError
from tetraspark.images.dockerfile import VENV
from tetraspark.site.engines import BRANCH, ENGINES, RELEASE
from tetraspark.site.load import LoadedSite
from tetraspark.site.machines import Ring

LIBRARY = "libnccl.so.2"
_PIP = "lib/python3.12/site-packages/nvidia/nccl/lib"
TARGETS: Mapping[str, str] = {
    RELEASE: f"{VENV}/{_PIP}/{LIBRARY}",
    BRANCH: f"/opt/sglang/{_PIP}/{LIBRARY}",
}
"""Engine -> the file of the image that torch loads by its own path, whatever LD_LIBRARY_PATH is."""
_MAP = re.compile(r"^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \d+\s+(/.*libnccl\.so[^/\n]*)$", re.MULTILINE)
DELETED = " (deleted)"


@dataclass(frozen=True)
class Overlay:
    """A file of a node mounted read-only over the image's libnccl, for one rank."""

    rank: int
    node: str
    source: str
    target: str

    @property
    def volume(self) -> str:
        """The value of docker's `--volume`."""
        return f"{self.source}:{self.target}:ro"


def overlays(loaded: LoadedSite, folders: Mapping[int, str] | None = None) -> tuple[Overlay, ...]:
    """Return the mounts of a site's patched library, one for the head and each worker; () for none.

    `folders` are its folders by rank as each node's login means them; without them, as the site
    has them. Raises UsageError for a folder or target that is not a whole path, and for a target
    that torch would not load.
    """
    ring = loaded.site.fabric.ring if loaded.site.fabric else None
    if ring is None or ring.nccl_library_dir is None or loaded.site.image is None:
        return ()
    _refuse_odd(loaded, ring)
    target = ring.nccl_target or TARGETS[ENGINES[loaded.site.image.recipe]]
    found = []
    for rank, node in enumerate(loaded.site.nodes):
        folder = (rank and ring.worker_nccl_library_dir) or ring.nccl_library_dir
        if folders is not None:
            folder = folders[rank]
        found.append(Overlay(rank, node.name, f"{folder.rstrip('/')}/{LIBRARY}", target))
    return tuple(found)


def _refuse_odd(loaded: LoadedSite, ring: Ring) -> None:
    problems = []
    for key in ("nccl_library_dir", "worker_nccl_library_dir", "nccl_target"):
        path = getattr(ring, key)
        name, start = f"fabric.ring.{key}", ("/",) if key == "nccl_target" else ("/", "~/")
        if path is None:
            continue
        where, seen = loaded.origin(name).where, f"`{name}` is {path!r}"
        if not path.startswith(start):
            fix = "write the whole path"
            problems.append(Problem(where, seen, f"a path from {' or '.join(start)}", fix))
        elif key == "nccl_target" and PurePosixPath(path).name != LIBRARY:
            fix = f"docker run --rm IMAGE find / -name '{LIBRARY}*'"
            problems.append(Problem(where, seen, f"a file named {LIBRARY}: torch loads it", fix))
    if problems:
        raise UsageError(*problems)


def mapped_libraries(maps: str) -> tuple[str, ...]:
    """Return the libnccl files in the text of a `/proc/PID/maps`, each once.

    One that was replaced on disk since keeps the kernel's ` (deleted)`.
    """
    return tuple(dict.fromkeys(_MAP.findall(maps)))
