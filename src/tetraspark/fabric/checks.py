"""All checks of a fleet's fabric that need more than one node, or the relays of one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tetraspark.doctor.check import Check
from tetraspark.fabric.cable_checks import cable_checks
from tetraspark.fabric.cabling_checks import SHOW, Topology, cabling_checks
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
    are the site's. Where no fabric port was seen at all, none of them is ok.
    """
    cabling = read_cabling(nodes, fabrics)
    checks = [
        *cabling_checks(cabling, topology),
        *subnet_checks(cabling, topology == "switch"),
        *cable_checks(cabling, fabrics, devices),
        *relay_checks(fabrics),
    ]
    return checks if cabling.cages else [_unseen(one, bool(fabrics)) for one in checks]


def _unseen(check: Check, looked: bool) -> Check:
    """Nothing wrong with nothing is no finding."""
    if check.verdict != "ok" or check.id == "CABLING.NODES":
        return check
    seen = "no RDMA port was seen" if looked else "no node was looked at"
    return replace(check, verdict="unknown", observed=seen, fix=SHOW)
