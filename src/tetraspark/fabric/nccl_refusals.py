"""Why a line cannot use NCCL's ring as it is cabled, or not with the NCCL of its image."""

from collections.abc import Iterator, Mapping
from errno import errorcode
from os import strerror

from tetraspark.errors import Problem
from tetraspark.fabric.cabling import Cabling
from tetraspark.fabric.cabling_checks import SHOW, described, to_uniform
from tetraspark.fabric.nccl_port import Functions
from tetraspark.fabric.nccl_route import Routes
from tetraspark.fabric.nccl_version import KEY, SUBNET_AWARE, knows_subnets

FIRST = ".".join(map(str, SUBNET_AWARE))
LIBRARY_KEY = "fabric.ring.nccl_library_dir"


def node_problems(
    cabling: Cabling, functions: Functions, absences: Mapping[str, Problem]
) -> Iterator[Problem]:
    """Yield the nodes of which nothing is known, or that give NCCL no device.

    `absences` say why nodes could not be looked at.
    """
    for node in cabling.nodes:
        if node in absences and node in cabling.absent:
            yield absences[node]
        elif not functions.get(node):
            seen = "not looked at" if node in cabling.absent else "no RDMA device of the site"
            yield Problem(node, seen, "the devices of every rank", SHOW)


def ring_problems(cabling: Cabling, tp: int) -> Iterator[Problem]:
    """Yield what keeps the ranks from being a ring of neighbours."""
    count = len(cabling.nodes)
    if tp != count:
        fix = f"set engine.tp = {count}"
        yield Problem("engine.tp", f"{tp} ranks on {count} nodes", "one rank a node", fix)
    if cabling.absent:
        return
    if cabling.shape != "ring":
        seen = f"the cables make a {cabling.shape}" if cabling.segments else "no cable was seen"
        wanted = "a ring: NCCL's own closes from the last rank to the first"
        fix = described(to_uniform(cabling)) if cabling.segments else SHOW
        yield Problem("cables", seen, wanted, f"{fix}; then {SHOW}")
    elif not cabling.in_rank_order:
        around = ", ".join(cabling.order)
        wanted = "ranks that follow the cables: NCCL joins each rank to the one after it"
        fix = f"write the [[nodes]] of the site in the order {around}"
        yield Problem("[[nodes]]", f"the order {', '.join(cabling.nodes)}", wanted, fix)


def version_problems(version: str | None, tag: str) -> Iterator[Problem]:
    """Yield why stock NCCL of this version, in the image `tag`, cannot choose ports by subnet."""
    wanted = f"NCCL {FIRST} or newer: older ones ignore NCCL_IB_SUBNET_AWARE_ROUTING silently"
    library = f"name a patched library in {LIBRARY_KEY}"
    known = knows_subnets(version)
    if known is None:
        fix = (
            f"on a node: docker run --rm --entrypoint python3 {tag} -c "
            "'import torch; print(torch.cuda.nccl.version())'; "
            f"write it as {KEY} into the site, or {library}"
        )
        yield Problem(f"image {tag}", "the version of its NCCL is not known", wanted, fix)
    elif not known:
        yield Problem(
            f"image {tag}", f"NCCL {version}", wanted, f"take a newer image, or {library}"
        )


def route_problems(found: Routes, fix: str) -> Iterator[Problem]:
    """Yield the pairs of ranks with a link that would not come up, and what NCCL would show."""
    for sender, receiver in dict.fromkeys((one.sender, one.receiver) for one in found.links):
        failed = (one for one in found.failed if (one.sender, one.receiver) == (sender, receiver))
        link = next(failed, None)
        if link is None or link.errno is None:
            continue
        name = f"{errorcode[link.errno]} {link.errno}, {strerror(link.errno)}"
        seen = f"NCCL would pair {link}: ibv_modify_qp fails ({name})"
        wanted = "two ports of one cable, each with an IPv4 address of its subnet"
        yield Problem(f"{sender} -> {receiver}", seen, wanted, fix)
