"""The launch of a fleet: look at every node, and resolve what the plan needs of each."""

from collections.abc import Mapping

from tetraspark.errors import Problem, RunError
from tetraspark.fabric.inventory import WANTED as FABRIC
from tetraspark.fabric.inventory import read_fabric
from tetraspark.fleet.command import NodeRunner
from tetraspark.fleet.facts import Facts, Wanted
from tetraspark.fleet.probe import probe_all
from tetraspark.line.launch import Launch, resolve, wanted
from tetraspark.line.preflight import in_phase
from tetraspark.site.load import LoadedSite


def launch_of(loaded: LoadedSite, runner: NodeRunner) -> Launch:
    """Look at the nodes, which changes nothing, and resolve a launch from what is found.

    Raises UsageError for what the site itself has wrong, RunError with every problem of any node.
    """
    asked = launch_wanted(loaded)
    return launch_from(loaded, probe_all(runner, {node.name: asked for node in loaded.site.nodes}))


def launch_wanted(loaded: LoadedSite) -> Wanted:
    """Return what a launch reads of each node. Raises UsageError as `launch.wanted` does."""
    return wanted(loaded) | FABRIC


def launch_from(loaded: LoadedSite, found: Mapping[str, Facts | RunError]) -> Launch:
    """Resolve a launch from what probes of `launch_wanted` found; raises as `launch_of` does."""
    facts: dict[str, Facts] = {}
    problems: list[Problem] = []
    for node, one in found.items():
        if isinstance(one, RunError):
            problems += [in_phase("launch", problem) for problem in one.problems]
        else:
            facts[node] = one
    if problems:
        raise RunError(*problems)
    return resolve(loaded, facts, {node: read_fabric(one) for node, one in facts.items()})
