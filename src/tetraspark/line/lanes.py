"""The lanes of a fleet whose collectives go over RDMA, and where they come from."""

from dataclasses import dataclass

from tetraspark.collectives.local_lane import Choice
from tetraspark.collectives.wiring import Wiring
from tetraspark.errors import Problem, UsageError
from tetraspark.line.launch_devices import devices_of
from tetraspark.ring.lanes import wiring
from tetraspark.ring.plan import read_plan
from tetraspark.site.load import LoadedSite
from tetraspark.site.origin import Origin

KEY = "collectives.ring_plan"


@dataclass(frozen=True)
class Lanes:
    """Which devices carry which lane between which ranks, with the reason."""

    wiring: Wiring
    origin: Origin


def lanes_of(loaded: LoadedSite) -> Lanes | None:
    """Return the lanes of a site with verbs, None of any other.

    A lane for each device of a node; on a ring those of the plan that the site names. Raises
    UsageError for a file that is no plan, or one of other nodes.
    """
    section = loaded.site.collectives
    if section is None or section.transport != "verbs":
        return None
    if section.ring_plan is not None:
        return Lanes(_ring(loaded, section.ring_plan), loaded.origin(KEY))
    nodes = loaded.site.nodes
    chosen = [list(map(Choice.parse, devices_of(loaded, rank))) for rank in range(len(nodes))]
    reason = Origin("derived", "devices of the fabric and its nodes, in their order")
    return Lanes(Wiring.uniform([node.name for node in nodes], chosen), reason)


def _ring(loaded: LoadedSite, path: str) -> Wiring:
    found = wiring(read_plan(loaded.resolve(path, KEY)))
    names = tuple(node.name for node in loaded.site.nodes)
    if found.nodes != names:
        wanted = f"one of {', '.join(names)}, in this order"
        fix = f"tetraspark ring plan --site {loaded.path}, then apply it"
        seen = f"{path} is the plan of {', '.join(found.nodes)}"
        raise UsageError(Problem(loaded.origin(KEY).where, seen, wanted, fix))
    return found
