"""What judges read of a node's fabric: less than its whole inventory, which asks each device."""

from tetraspark.fabric.inventory import WANTED
from tetraspark.fleet.facts import Wanted

UNREAD = ("offload ", "statistics ", "rules ", "neighbours", "routes", "lldp", "devlink ")
FABRIC = Wanted(
    files=tuple(one for one in WANTED.files if "counters" not in one),
    links=WANTED.links,
    commands={name: argv for name, argv in WANTED.commands.items() if not name.startswith(UNREAD)},
)
"""Addresses, RDMA devices with their ports, GIDs and PCIe links; no counters, rules, neighbours."""
