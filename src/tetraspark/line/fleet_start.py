"""What a start does on the nodes of a fleet besides its ranks: look, make room, watch, explain."""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

from tetraspark.doctor.baseline import NodeState, baseline_path, keep_baseline
from tetraspark.doctor.examine import start_wanted
from tetraspark.errors import Problem, RunError
from tetraspark.fabric.nccl_profile import NcclProfile
from tetraspark.fleet.command import NodeRunner
from tetraspark.fleet.facts import Facts, Wanted
from tetraspark.fleet.meminfo import GIB
from tetraspark.fleet.probe import probe_all
from tetraspark.line.driver_watch import DriverWatch
from tetraspark.line.fleet_launch import launch_from, launch_wanted
from tetraspark.line.fleet_preflight import Preflight, fleet_preflight, require_tolerable
from tetraspark.line.launch import Launch
from tetraspark.line.nccl_guard import NcclGuard
from tetraspark.line.plan import Plan
from tetraspark.line.progress import Look, Watcher
from tetraspark.line.start_watch import EngineGuard, MemoryGuard
from tetraspark.site.load import LoadedSite
from tetraspark.weights.each_node import parted
from tetraspark.weights.evict import Evicted, evict
from tetraspark.weights.place import place_of


class FleetStart:
    """One start of a fleet's line, on the nodes that `nodes` reaches.

    `despite` are the checks that may fail; raises UsageError for names that are none. `tell` gets
    a line about what was done, `warn` what may hurt and ends nothing. `also` is what the one look
    at each node is to read for others. `images` has the ID of the image that each node's container
    was made of, as far as the ranks were watched.
    """

    def __init__(
        self,
        loaded: LoadedSite,
        nodes: NodeRunner,
        despite: Collection[str] = (),
        tell: Callable[[str], None] = lambda text: None,
        warn: Callable[[Problem], None] = lambda problem: None,
        also: Mapping[str, Wanted] = MappingProxyType({}),
    ) -> None:
        require_tolerable(despite)
        self._loaded = loaded
        self._nodes = nodes
        self._despite = despite
        self._tell = tell
        self._warn = warn
        self._also = also
        self.images: dict[str, str] = {}
        self._preflight: Preflight | None = None
        self._driver: DriverWatch | None = None
        guards = (MemoryGuard(loaded, nodes, warn), EngineGuard(loaded))
        self.watchers: list[Watcher] = [*guards, self._note_images]

    def watch_nccl(self, plan: Plan, profile: NcclProfile) -> None:
        """Look into every container once its rank listens: is NCCL what the profile wants?"""
        self.watchers.append(NcclGuard(self._nodes, plan, profile, self._warn))

    @cached_property
    def found(self) -> Mapping[str, Facts | RunError]:
        """What one probe of each node found, before anything is done, for all that a start asks."""
        launch = launch_wanted(self._loaded)
        return probe_all(
            self._nodes,
            {
                node: one | launch | self._also.get(node, Wanted())
                for node, one in start_wanted(self._loaded).items()
            },
        )

    def launch(self) -> Launch:
        """Resolve the launch from what was found, and tell what may hurt. Raises as `launch_of`."""
        launch = launch_from(self._loaded, self.found)
        for problem in launch.warnings:
            self._warn(problem)
        return launch

    def look(self, replacing: bool) -> dict[str, Any]:
        """Judge what was found of the nodes; returns what the run's state is to tell of it.

        `replacing` is for a line that runs and is about to make way. Raises RunError with every
        failure that is not tolerated.
        """
        judged = self._preflight = fleet_preflight(
            self._loaded, self._nodes, self.found, self._despite, replacing
        )
        for check in (*judged.tolerated, *judged.doubts):
            self._warn(check.problem)
        return {"tolerated": [check.as_dict() for check in judged.tolerated]}

    def free_memory(self) -> dict[str, Any]:
        """Give the checkpoint's page cache back, for the load; returns the nodes' MemFree, bytes.

        A node where that fails is warned of. The kernel's log is looked at last, so that what the
        driver says from now on is the start's.
        """
        place = place_of(self._loaded)
        evicted, problems = parted(evict(place.path, self._nodes, place.holders, lambda one: None))
        for problem in problems:
            self._warn(problem)
        if evicted:
            self._tell(f"page cache of {place.path} given back: {_told(evicted.values())}")
        self._driver = DriverWatch(self._nodes, place.nodes)
        return {"mem_free": {node: _free(one) for node, one in evicted.items()}}

    def complaints(self) -> list[Problem]:
        """Return what the GPU drivers have found no memory for since `free_memory`."""
        return self._driver.problems() if self._driver else []

    @property
    def states(self) -> Mapping[str, NodeState]:
        """The idle nodes as they were looked at before the start; none where a line made way."""
        return self._preflight.states if self._preflight else {}

    def keep_states(self) -> None:
        """Keep the states of the idle nodes, now that the line is ready, to compare with later."""
        states = self.states
        if not states:
            return
        try:
            keep_baseline(self._loaded.site.name, states)
        except OSError as error:
            path = str(baseline_path(self._loaded.site.name))
            wanted = "the nodes' states kept, for HISTORY checks"
            self._warn(Problem(path, f"cannot be written: {error}", wanted, f"ls -ld {path}; df"))

    def _note_images(self, look: Look) -> None:
        nodes = self._loaded.site.nodes
        self.images |= {nodes[one.rank].name: one.image for one in look.states if one.image}


def _free(one: Evicted) -> dict[str, int]:
    return {"before": one.before["MemFree"], "after": one.after["MemFree"]}


def _told(evicted: Iterable[Evicted]) -> str:
    return ", ".join(
        f"{one.node} MemFree {one.before['MemFree'] / GIB:.1f} -> "
        f"{one.after['MemFree'] / GIB:.1f} GiB"
        for one in evicted
    )
