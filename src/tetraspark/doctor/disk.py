"""Room on a node's disks: what is needed, minus what is there already."""

import glob
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tetraspark.doctor import objects
from tetraspark.doctor.docker import info
from tetraspark.doctor.finding import Finding
from tetraspark.doctor.node_view import NodeView
from tetraspark.doctor.paths import engram_folder, model_folder
from tetraspark.doctor.size import gib
from tetraspark.fleet.facts import Wanted
from tetraspark.fleet.meminfo import GIB
from tetraspark.site.load import LoadedSite

DOCKER_ROOT = "/var/lib/docker"
RESERVE = GIB
"""For logs and compiled kernels of a start."""


@dataclass(frozen=True)
class Need:
    """Bytes that must still come to a path; None where no node has it, so nobody knows."""

    what: str
    path: str
    missing: int | None


def wanted(loaded: LoadedSite, rank: int) -> Wanted:
    """Ask for the room, and for the sizes of what takes it."""
    folders = [one for one in (model_folder(loaded, rank), engram_folder(loaded, rank)) if one]
    docker = () if loaded.site.kind == "local" else (DOCKER_ROOT,)
    return Wanted(sizes=tuple(map(_files, folders)), space=("~", *docker, *folders))


def _files(folder: str) -> str:
    return f"{glob.escape(folder.rstrip('/'))}/*"


def _held(view: NodeView, folder: str | None) -> int | None:
    """Return the bytes of the files in a folder, None for no folder."""
    if folder is None:
        return None
    paths = view.facts.globs.get(_files(folder), ())
    return sum(view.facts.sizes.get(path, 0) for path in paths)


def _most(sizes: list[int]) -> int | None:
    """Return the largest size of a thing on any node: the whole; None where none has it."""
    return max(sizes, default=0) or None


def _image_size(view: NodeView) -> int:
    image = view.loaded.site.image
    found = objects.image(view, image.tag) if image else None
    return found[1] if found else 0


def needs(view: NodeView, views: Mapping[str, NodeView]) -> Iterator[Need]:
    """Return what must still come to a node, by the nodes that have it."""
    for what, folder_of in (("checkpoint", model_folder), ("Engram shards", engram_folder)):
        folder = folder_of(view.loaded, view.rank)
        own = _held(view, folder)
        if folder is not None and own is not None:
            held = [_held(one, folder_of(one.loaded, one.rank)) or 0 for one in views.values()]
            whole = _most(held)
            yield Need(what, folder, None if whole is None else whole - own)
    if view.loaded.site.image is not None:
        whole = _most([_image_size(one) for one in views.values()])
        there = _image_size(view)
        missing = 0 if there else whole
        yield Need("image", DOCKER_ROOT, missing)


def room(views: Mapping[str, NodeView]) -> Iterator[Finding]:
    """Judge the room of each node's file systems against what must still come there."""
    for node, view in views.items():
        needed = list(needs(view, views))
        spaces = {path: view.facts.space.get(path) for path in ("~", *(n.path for n in needed))}
        # Two paths are of one file system when its size and room are the same.
        systems = {(one.total, one.free): one for one in spaces.values() if one is not None}
        for key, system in systems.items():
            here = [
                need
                for need in needed
                if (one := spaces[need.path]) is not None and (one.total, one.free) == key
            ]
            yield _judged(node, view, system.path, system.free, here)
        yield from _elsewhere(node, view)


def _judged(node: str, view: NodeView, path: str, free: int, needed: list[Need]) -> Finding:
    missing = sum(need.missing or 0 for need in needed)
    told = ", ".join(f"{need.what} {_words(need.missing)}" for need in needed)
    seen = f"{gib(free)} free at {path}" + (f"; {told}" if told else "")
    wanted = f"{gib(missing + RESERVE)}: what is not there yet, and {gib(RESERVE)} for a start"
    unknown = [need.what for need in needed if need.missing is None]
    if free < missing + RESERVE:
        fix = view.shell(f"docker system df; du -xsh {path}/* | sort -h | tail")
        return Finding("failed", seen, wanted, fix, node)
    if unknown:
        fix = f"put the {unknown[0]} on one node: its size says what the others need"
        return Finding("unknown", seen, wanted, fix, node)
    return Finding("ok", seen, wanted, node=node)


def _words(missing: int | None) -> str:
    if missing is None:
        return "of unknown size: no node has it"
    return f"needs {gib(missing)} more" if missing else "is there"


def _elsewhere(node: str, view: NodeView) -> Iterator[Finding]:
    """Say that Docker keeps its images where nobody looked."""
    root = (info(view) or {}).get("DockerRootDir", DOCKER_ROOT)
    if root != DOCKER_ROOT:
        seen = f"Docker keeps its images in {root}, whose room was not asked for"
        wanted = f"its images below {DOCKER_ROOT}"
        yield Finding("unknown", seen, wanted, view.shell(f"df -h {root}"), node)
