"""The plan for a site of either kind."""

from tetraspark.fleet.local import LocalRunner
from tetraspark.line.fleet_plan import fleet_plan
from tetraspark.line.lanes import lanes_of
from tetraspark.line.launch import Launch
from tetraspark.line.local_plan import local_plan
from tetraspark.line.plan import Plan
from tetraspark.line.tuned import tuned
from tetraspark.site.load import LoadedSite


def make_plan(loaded: LoadedSite, launch: Launch | None = None) -> Plan:
    """Plan a line. A local line depends on this machine, its thresholds included, a fleet's on its
    nodes at launch.

    Without `launch`, what depends on the nodes is named and has no value. Raises UsageError also
    for the file of a ring's plan that is none, or another ring's.
    """
    if loaded.site.kind == "local":
        inventory = LocalRunner().inventory(len(loaded.site.nodes))
        return local_plan(loaded, inventory, tuned(loaded))
    return fleet_plan(loaded, launch, lanes_of(loaded))
