"""NCCL at launch: the profile by what was found on the nodes, and a patched library there. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from glob import escape
from pathlib import PurePosixPath

from tetraspark.errors import Problem
from tetraspark.fabric.cabling_read import read_cabling
from tetraspark.fabric.function import NodeFabric
from tetraspark.fabric.nccl_choose import choose
from tetraspark.fabric.nccl_library import overlays
from tetraspark.fabric.nccl_port import functions_of
from tetraspark.fabric.nccl_profile import NcclProfile
from tetraspark.fabric.nccl_version import image_version
from tetraspark.fabric.survey import chosen
from tetraspark.fleet.facts import Facts, Wanted
from tetraspark.line.launch_paths import NCCL, expanded_paths
from tetraspark.site.load import LoadedSite


def library_wanted(loaded: LoadedSite) -> Wanted:
    """Return what to ask a node about the site's patched library: how large it is.

    Raises UsageError for a library that no container can be given.
    """
    return Wanted(sizes=tuple(dict.fromkeys(escape(one.source) for one in overlays(loaded))))


def nccl_of(
    loaded: LoadedSite,
    facts: Mapping[str, Facts],
    fabrics: Mapping[str, NodeFabric],
    judge_devices: bool,
) -> tuple[NcclProfile | None, list[Problem]]:
    """Return the profile of a fleet and what is wrong with it; None for a site without a fabric.

    Without `judge_devices` nothing is said of devices and links: the launch has told of those that
    do not work. Raises UsageError for what the site itself contradicts.
    """
    if loaded.site.fabric is None:
        return None, []
    _, devices = chosen(loaded)
    there = {node: {one.rdma for one in fabric.functions} for node, fabric in fabrics.items()}
    known = {node: tuple(one for one in names if one in there[node])
             for node, names in devices.items()}  # fmt: skip
    cabling, functions = read_cabling(tuple(devices), fabrics), functions_of(known, fabrics)
    profile = choose(cabling, functions, image_version(loaded), loaded, judge_devices=judge_devices)
    if profile.overlays:
        folders = {
            rank: expanded_paths(loaded, rank, facts[node])[NCCL]
            for rank, node in enumerate(devices)
        }
        profile = replace(profile, overlays=overlays(loaded, folders))
    return profile, [*profile.refusals, *_library_problems(loaded, facts, profile)]


def _library_problems(
    loaded: LoadedSite, facts: Mapping[str, Facts], profile: NcclProfile
) -> Iterator[Problem]:
    """Yield the nodes without the library, and those with another one than the head.

    Sizes alone are compared here; the bytes are, once the line has started (NCCL.SAME).
    """
    first: tuple[str, int] | None = None
    for one in profile.overlays:
        size = facts[one.node].sizes.get(str(PurePosixPath(one.source)))
        where, wanted = f"{one.node} {one.source}", "one build of the patched library on every node"
        if size is None:
            fix = f"copy it to {one.node}, or correct {loaded.origin(NCCL).where}"
            yield Problem(where, "no such file", wanted, fix)
            continue
        first = first or (one.node, size)
        if size != first[1]:
            seen = f"{size} bytes; {first[0]} has one of {first[1]}"
            yield Problem(where, seen, wanted, f"copy that of {first[0]} to {one.node}")
