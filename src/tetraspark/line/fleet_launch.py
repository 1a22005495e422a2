"""The launch of a fleet: look at every node, and resolve what the plan needs of each."""

from tetraspark.errors import Problem, RunError
from tetraspark.fabric.inventory import WANTED as FABRIC
from tetraspark.fabric.inventory import read_fabric
from tetraspark.fleet.command import NodeRunner
from tetraspark.fleet.facts import Facts
from tetraspark.fleet.probe import probe_all
from tetraspark.line.launch import Launch, resolve, wanted
from tetraspark.line.preflight import in_phase
from tetraspark.site.load import LoadedSite


def launch_of(loaded: LoadedSite, runner: NodeRunner) -> Launch:
    """Look at the nodes, which changes nothing, and resolve a launch from what is found.

    Raises UsageError for what the site itself has wrong, RunError with every problem of any node.
    """
    asked = wanted(loaded) | FABRIC
    found = probe_all(runner, {node.name: asked for node in loaded.site.nodes})
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
