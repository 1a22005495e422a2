"""The paths of a fleet site as each node's login means them. Pure."""

from collections.abc import Iterator

from tetraspark.errors import Problem, UsageError
from tetraspark.fleet.facts import Facts
from tetraspark.line.settings import value_of
from tetraspark.site.load import LoadedSite

MODEL = "model.path"
ENGRAM = "engram.dir"
NCCL = "fabric.ring.nccl_library_dir"
WORKER_KEYS = {ENGRAM: "engram.worker_dir", NCCL: "fabric.ring.worker_nccl_library_dir"}
"""Key of a path -> the key that workers have instead, where it is set."""


def refuse_relative(loaded: LoadedSite) -> None:
    """Raise UsageError for paths that do not say where they begin on another machine."""
    problems = []
    for key, path in _paths(loaded):
        if not path.startswith(("/", "~/")) and path != "~":
            wanted = "a path from `/` or `~/`: the nodes do not have the site file's folder"
            where = loaded.origin(key).where
            problems.append(Problem(where, f"`{key}` is {path!r}", wanted, "write the whole path"))
    if problems:
        raise UsageError(*problems)


def expanded_paths(loaded: LoadedSite, rank: int, facts: Facts) -> dict[str, str]:
    """Return the paths of one node by the key of the head; `~` is the home of its own login."""
    paths = dict(_paths(loaded))
    if rank:
        paths |= {key: paths[own] for key, own in WORKER_KEYS.items() if own in paths}
    return {key: facts.expand(paths[key]) for key in (MODEL, ENGRAM, NCCL) if key in paths}


def _paths(loaded: LoadedSite) -> Iterator[tuple[str, str]]:
    for key in (MODEL, *(key for pair in WORKER_KEYS.items() for key in pair)):
        path = value_of(loaded, key)
        if path is not None:
            yield key, path
