"""What an earlier run of the line left on a node, and containers that do not stay up."""

from collections.abc import Iterator, Mapping
from typing import Any

from tetraspark.doctor import objects
from tetraspark.doctor.docker import info, not_asked
from tetraspark.doctor.finding import Finding
from tetraspark.doctor.node_view import NodeView
from tetraspark.doctor.size import gib
from tetraspark.fabric.inventory_json import parsed, table, whole, word
from tetraspark.fleet.container import LINE, container_name
from tetraspark.fleet.facts import Wanted

CONTAINERS = Wanted(
    commands={"docker ps": ("docker", "ps", "--all", "--no-trunc", "--format", "{{json .}}")}
)
SHM = tuple(f"/dev/shm/{name}*" for name in ("tetraspark-", "nccl-", "psm_", "torch_", "sglang"))
SEGMENTS = Wanted(sizes=SHM)
"""What ranks and their engine keep there: regions of tetraspark, NCCL, Python and torch."""


def _rows(view: NodeView) -> list[dict[str, Any]]:
    lines = view.said("docker ps").stdout.splitlines()
    return [found for line in lines if (found := table(parsed(line)))]


def _is_ours(view: NodeView, row: Mapping[str, Any]) -> bool:
    line = view.loaded.site.name
    names = str(row.get("Names", "")).split(",")
    labelled = f"{LINE}={line}" in str(row.get("Labels", "")).split(",")
    return labelled or any(
        name == container_name(line, rank)
        for name in names
        for rank in range(len(view.loaded.site.nodes))
    )


def running(view: NodeView) -> bool:
    """Tell whether a container of this line runs on the node."""
    return any(_is_ours(view, row) and row.get("State") == "running" for row in _rows(view))


def containers(view: NodeView) -> Iterator[Finding]:
    """Judge containers of this line: one that runs serves, others are left over."""
    wanted = "no container of this line"
    if info(view) is None:
        yield not_asked(view, wanted)
        return
    ours = [row for row in _rows(view) if _is_ours(view, row)]
    told = ", ".join(f"{row.get('Names')}: {row.get('Status')}" for row in ours)
    stop = f"tetraspark stop --site {view.loaded.path}"
    if running(view):
        yield Finding("failed", f"{told}: the line runs", wanted, f"tetraspark status; or {stop}")
    elif ours:
        yield Finding("warning", f"{told}: left over", wanted, stop)
    else:
        yield Finding("ok", "none", wanted)


def restarts(view: NodeView) -> Iterator[Finding]:
    """Judge containers that start again and again, ours and others on the node."""
    wanted = "no container that was restarted"
    if info(view) is None:
        yield not_asked(view, wanted)
        return
    found = objects.container(view) or {}
    count = whole(found.get("RestartCount")) or 0
    loops = [
        f"{row.get('Names')}: {row.get('Status')}"
        for row in _rows(view)
        if row.get("State") == "restarting"
    ]
    if count or loops:
        state = word(table(found.get("State")).get("Status"))
        seen = [f"RestartCount {count}, status {state or 'unknown'}"] if count else []
        fix = view.shell("docker ps -a; docker logs --tail 50 NAME")
        yield Finding("failed", "; ".join([*seen, *loops]), wanted, f"{fix}: see why it ends")
    else:
        yield Finding("ok", "none", wanted)


def segments(view: NodeView) -> Iterator[Finding]:
    """Judge shared memory of earlier runs; it takes memory until it is removed."""
    wanted = "no shared memory of an earlier run in /dev/shm"
    paths = [path for pattern in SHM for path in view.facts.globs.get(pattern, ())]
    if not paths:
        yield Finding("ok", "none", wanted)
        return
    size = sum(view.facts.sizes.get(path, 0) for path in paths)
    seen = f"{len(paths)} segments, {gib(size)}: {', '.join(paths[:3])}"
    if running(view):
        yield Finding("ok", f"{seen}; the line runs", wanted)
    else:
        stop = f"tetraspark stop --site {view.loaded.path}"
        fix = f"{stop}; what is left after it: {view.shell('ls -l /dev/shm')}"
        yield Finding("warning", seen, wanted, fix)
