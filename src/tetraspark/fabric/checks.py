"""All checks of a fleet's fabric that need more than one node, or the relays of one."""

from collections.abc import Mapping, Sequence

from tetraspark.doctor.check import Check
from tetraspark.fabric.cable_checks import cable_checks
from tetraspark.fabric.cabling_checks import Topology, cabling_checks
from tetraspark.fabric.cabling_read import read_cabling
from tetraspark.fabric.cabling_subnets import subnet_checks
from tetraspark.fabric.function import NodeFabric
from tetraspark.fabric.relay_checks import relay_checks


def fabric_checks(
    nodes: Sequence[str],
    fabrics: Mapping[str, NodeFabric],
    topology: Topology,
    devices: Mapping[str, tuple[str, ...]],
) -> list[Check]:
    """Return the checks of the fabric of `nodes`, given in rank order.

    `fabrics` has those that could be looked at; `topology` and the RDMA `devices` of each node
    are the site's.
    """
    cabling = read_cabling(nodes, fabrics)
    return [
        *cabling_checks(cabling, topology),
        *subnet_checks(cabling, topology == "switch"),
        *cable_checks(cabling, fabrics, devices),
        *relay_checks(fabrics),
    ]
