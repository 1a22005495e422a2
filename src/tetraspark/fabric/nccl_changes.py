"""What would change an NCCL profile: functions that could carry as well, cables, the library."""

from collections.abc import Iterator

from tetraspark.fabric.cabling import Cabling
from tetraspark.fabric.cabling_checks import described, to_uniform
from tetraspark.fabric.nccl_port import Functions, ports_of
from tetraspark.fabric.nccl_refusals import LIBRARY_KEY
from tetraspark.fabric.nccl_route import Selection, routes
from tetraspark.fabric.nccl_version import knows_subnets


def device_changes(
    cabling: Cabling, functions: Functions, carrying: Functions, selection: Selection, prefix: int
) -> Iterator[str]:
    """Yield what is to be done for more functions to carry.

    `functions` are those that the site names, `carrying` those of them that would.
    """
    named, used = _names(functions), _names(carrying)
    idle = [name for name in named if name not in used]
    if idle:
        why = "the patched library sends two GIDs, those of the first PCI domain"
        if selection.patch != "advertise-2":
            why = f"{selection.channels} as the most channels does not reach them"
        yield f"{', '.join(idle)}: left out, because {why}"
    every = _usable(cabling)
    if any(len(every[node]) > len(functions.get(node, ())) for node in every):
        found = routes(ports_of(cabling, every, prefix), selection)
        more = {name for node in every for name in found.carrying(node)} - set(named)
        if found.ok and more:
            yield f"name {', '.join(sorted(more))} in fabric.devices: they would carry as well"
    bare: dict[str, list[str]] = {}
    for cage, twins in cabling.cages.items():
        for one in twins:
            if one.rdma and one.up and not one.addresses:
                bare.setdefault(one.rdma, []).append(cage.node)
    for device, nodes in bare.items():
        yield f"{device} has no IPv4 address on {', '.join(nodes)}, and carries nothing without one"


def cabling_change(cabling: Cabling) -> Iterator[str]:
    """Yield what a ring depends on that does not join port 0 of each node to port 1 of the next."""
    if cabling.shape == "ring" and cabling.orientation != "uniform":
        moves = described(to_uniform(cabling))
        yield f"this ring needs NCCL_IB_MERGE_NICS=1; {moves}, and it works without fusion too"


def library_change(version: str | None, patched: bool) -> Iterator[str]:
    """Yield that a patched library could be spared."""
    if patched and knows_subnets(version):
        yield f"NCCL {version} of the image needs no patch: delete {LIBRARY_KEY} from the site"


def _names(functions: Functions) -> list[str]:
    found = [one.rdma or one.netdev for several in functions.values() for one in several]
    return list(dict.fromkeys(found))


def _usable(cabling: Cabling) -> Functions:
    """Return every function of the nodes that NCCL could use."""
    return {
        node: tuple(
            one
            for cage, twins in cabling.cages.items()
            for one in twins
            if cage.node == node and one.rdma and one.up and one.addresses
        )
        for node in cabling.nodes
        if node not in cabling.absent
    }
