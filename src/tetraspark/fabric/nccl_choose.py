"""The choice of an NCCL profile: without a patch where that works, by the model of its routes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from tetraspark.errors import Problem
from tetraspark.fabric.cabling import Cabling
from tetraspark.fabric.cabling_checks import described, to_uniform
from tetraspark.fabric.nccl_changes import cabling_change, device_changes, library_change
from tetraspark.fabric.nccl_library import overlays
from tetraspark.fabric.nccl_port import Functions, ports_of
from tetraspark.fabric.nccl_profile import Name, NcclProfile
from tetraspark.fabric.nccl_refusals import (
    node_problems,
    ring_problems,
    route_problems,
    version_problems,
)
from tetraspark.fabric.nccl_route import Patch, Routes, Selection, routes
from tetraspark.fabric.nccl_site import exchange_problems, own_value, settle
from tetraspark.fabric.nccl_variables import PREFERRED, variables
from tetraspark.fabric.survey import chosen
from tetraspark.site.load import LoadedSite
from tetraspark.site.machines import Ring

CHANNELS = 4
"""Channels that the model looks at where the site says nothing: one a function of a Spark."""
OWN_NETWORK = ("IB", "NONE")
"""NCCL's own RDMA transport, and no plugin in its place: what the model is of."""


@dataclass(frozen=True)
class Candidate:
    """A profile that may be chosen, and the selection of devices it makes."""

    name: Name
    selection: Selection


@dataclass(frozen=True)
class Carried:
    """A candidate, the functions that carry with it, and its routes."""

    candidate: Candidate
    functions: Functions
    routes: Routes


def choose(
    cabling: Cabling,
    functions: Functions,
    nccl_version: str | None,
    site: LoadedSite,
    patch: Patch | None = None,
    *,
    judge_devices: bool = True,
    absences: Mapping[str, Problem] | None = None,
) -> NcclProfile:
    """Return the profile of a line.

    `functions` are those of the site's devices, `nccl_version` that of the image, None where it is
    not known; `patch` is what a library that the site names does, in place of the site's own word.
    `absences` say why nodes could not be looked at. Without `judge_devices` there are no refusals
    for devices and links: for a caller that tells of them itself. Raises UsageError for a site
    without [fabric], and for variables of it that the profile does not work with.
    """
    topology, _ = chosen(site)
    assert site.site.fabric is not None
    if topology == "switch":
        # Who has not talked to whom yet, or which switch says its name, parts nobody on a switch.
        cabling = replace(cabling, segments=())
    ring = site.site.fabric.ring if topology == "ring" else None
    prefix = (ring or Ring()).subnet_prefix
    patched = ring is not None and ring.nccl_library_dir is not None
    candidates = _candidates(site, topology, _patch(site, patch))
    best = _best(cabling, functions, candidates, prefix)
    name, selection = best.candidate.name, best.candidate.selection
    wanted = variables(name, ring, selection.patch, lambda key: _line(site, key))
    found, kept = settle(site, wanted, name)
    other = [one for one in kept if one.name in PREFERRED and one.value.upper() not in OWN_NETWORK]
    unaware: list[Problem] = []
    if selection.aware and not patched and not other:
        unaware += version_problems(nccl_version, site.site.image.tag if site.site.image else "")
    problems = [
        *(node_problems(cabling, functions, absences or {}) if judge_devices else ()),
        *unaware,
    ]
    if topology == "ring":
        problems += [*ring_problems(cabling, site.site.engine.tp), *exchange_problems(site)]
    if judge_devices and not problems and not other:
        problems += route_problems(best.routes, _recabling(cabling, name))
    return NcclProfile(
        name=name,
        version=nccl_version,
        variables=found,
        kept=kept,
        devices=_names(best.functions),
        carrying={node: best.routes.carrying(node) if not other else () for node in best.functions},
        needs_patch=patched or bool(unaware),
        overlays=overlays(site),
        refusals=tuple(problems),
        changes=(
            *device_changes(cabling, functions, best.functions, selection, prefix),
            *(cabling_change(cabling) if name == "stock-merged" else ()),
            *library_change(nccl_version, patched),
            *(f"{one.name}={one.value} ({one.where}): what carries is not known" for one in other),
        ),
    )


def _patch(site: LoadedSite, told: Patch | None) -> Patch:
    """Return what the library of a line does: the word of the caller, the site, or the least."""
    ring = site.site.fabric.ring if site.site.fabric else None
    if ring is None or ring.nccl_library_dir is None:
        return "stock"
    return told or ring.nccl_patch or "advertise-2"


def _candidates(site: LoadedSite, topology: str, patch: Patch) -> list[Candidate]:
    """Return the profiles of a topology, the first choice first."""
    channels = _channels(site, topology)
    merged = Candidate("stock-merged", Selection(True, True, channels=channels))
    uniform = Candidate("stock-uniform", Selection(False, True, channels=channels))
    fused = own_value(site, "NCCL_IB_MERGE_NICS")
    if topology != "ring":
        name: Name = "pair" if topology == "pair" else "switch"
        own = own_value(site, "NCCL_IB_SUBNET_AWARE_ROUTING")
        aware = own is not None and own[0] == "1"
        merge = fused is None or fused[0] != "0"
        plain = Candidate(name, Selection(merge, aware, channels=channels))
        return [plain, *([merged] if merge else []), uniform]
    if patch != "stock":
        return [Candidate("patched", Selection(False, True, patch, True, channels))]
    if fused is not None:
        return [merged if fused[0] != "0" else uniform]
    return [merged, uniform]


def _channels(site: LoadedSite, topology: str) -> int:
    fabric = site.site.fabric
    assert fabric is not None
    if topology == "ring":
        return (fabric.ring or Ring()).channels_max
    return fabric.nccl.channels_max or CHANNELS


def _best(
    cabling: Cabling, functions: Functions, candidates: Iterable[Candidate], prefix: int
) -> Carried:
    """Return the first candidate all of whose links come up, or else the first one."""
    tried = [_carried(cabling, functions, one, prefix) for one in candidates]
    return next((one for one in tried if one.routes.ok), tried[0])


def _carried(cabling: Cabling, functions: Functions, candidate: Candidate, prefix: int) -> Carried:
    """Return the routes of a candidate, without the functions that would carry nothing."""
    found = routes(ports_of(cabling, functions, prefix), candidate.selection)
    if not found.ok:
        return Carried(candidate, functions, found)
    used = {
        node: tuple(one for one in several if one.rdma in found.carrying(node))
        for node, several in functions.items()
    }
    if used == dict(functions):
        return Carried(candidate, functions, found)
    fewer = routes(ports_of(cabling, used, prefix), candidate.selection)
    return Carried(candidate, used, fewer) if fewer.ok else Carried(candidate, functions, found)


def _names(functions: Functions) -> Mapping[str, tuple[str, ...]]:
    return {node: tuple(one.rdma or one.netdev for one in several)
            for node, several in functions.items()}  # fmt: skip


def _line(site: LoadedSite, key: str) -> str:
    """Return the place of a key in the site file, "" for a default."""
    origin = site.origin(key)
    return origin.where if origin.kind == "file" else ""


def _recabling(cabling: Cabling, name: Name) -> str:
    """Return what to do about links that do not come up."""
    if name == "stock-uniform":
        return f"remove NCCL_IB_MERGE_NICS=0, or {described(to_uniform(cabling))}"
    return "tetraspark fabric show; every function of the site needs an address of its cable"
