"""The plan for a site of either kind."""

from tetraspark.fleet.runner import Runner
from tetraspark.line.fleet_plan import fleet_plan
from tetraspark.line.local_plan import local_plan
from tetraspark.line.plan import Plan
from tetraspark.site.load import LoadedSite


def make_plan(loaded: LoadedSite, runner: Runner) -> Plan:
    """Plan a line; only a local line depends on the machine it is planned on."""
    if loaded.site.kind == "local":
        return local_plan(loaded, runner.inventory(len(loaded.site.nodes)))
    return fleet_plan(loaded)
