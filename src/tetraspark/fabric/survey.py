"""Survey: the fabric of every node of a site, asked at once."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.fabric.cabling_checks import Topology
from tetraspark.fabric.function import NodeFabric
from tetraspark.fabric.inventory import WANTED, read_fabric, unasked
from tetraspark.fabric.inventory_file import Inventory
from tetraspark.fleet.command import NodeRunner
from tetraspark.fleet.facts import Facts
from tetraspark.fleet.probe import probe_all
from tetraspark.site.load import LoadedSite

Look = Mapping[str, Facts | RunError]
"""What each node showed, in rank order, or why it could not be looked at."""


def look(runner: NodeRunner, nodes: Iterable[str]) -> dict[str, Facts | RunError]:
    """Look at nodes; one whose devices have other names than a Spark's is looked at twice."""
    found = probe_all(runner, dict.fromkeys(nodes, WANTED))
    left = {node: more for node, one in found.items()
            if isinstance(one, Facts) and (more := unasked(one)) is not None}  # fmt: skip
    for node, second in probe_all(runner, left).items():
        first = found[node]
        if isinstance(first, Facts) and isinstance(second, Facts):
            found[node] = replace(first, commands={**first.commands, **second.commands})
        else:
            found[node] = second
    return found


def fabrics(found: Look) -> dict[str, NodeFabric]:
    """Return the fabric of each node that could be looked at."""
    return {node: read_fabric(one) for node, one in found.items() if isinstance(one, Facts)}


def survey(
    runner: NodeRunner, line: str, topology: Topology, devices: Mapping[str, tuple[str, ...]]
) -> Inventory:
    """Look at the nodes of a line, given in rank order with the RDMA devices of the site."""
    found = look(runner, devices)
    absent = {node: one.problems[0] for node, one in found.items() if isinstance(one, RunError)}
    unseen = {node: one.seen for node, one in absent.items()}
    fixes = {node: one.fix for node, one in absent.items()}
    return Inventory(line, topology, tuple(devices), devices, fabrics(found), unseen, fixes)


def chosen(loaded: LoadedSite) -> tuple[Topology, dict[str, tuple[str, ...]]]:
    """Return what a site says of its fabric: the topology, and RDMA devices in rank order.

    Raises UsageError for a site without [fabric].
    """
    site = loaded.site
    if site.fabric is None:
        seen = f'kind = "{site.kind}", without [fabric]'
        fix = "tetraspark fabric show --from FILE shows a saved inventory"
        where = loaded.origin("kind").where
        raise UsageError(Problem(where, seen, "a fleet with a fabric", fix))
    devices = {node.name: tuple(node.devices or site.fabric.devices) for node in site.nodes}
    return site.fabric.topology, devices
