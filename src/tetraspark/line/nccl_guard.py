"""NCCL of a start, looked at once in every rank's container: a library, variables, devices."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from tetraspark.doctor.check import Check
from tetraspark.errors import Problem, RunError
from tetraspark.fabric.nccl_checks import RankNccl, start_checks
from tetraspark.fabric.nccl_profile import NcclProfile
from tetraspark.fleet.command import NodeRunner
from tetraspark.fleet.container import container_name
from tetraspark.fleet.program import ask
from tetraspark.line.plan import Plan
from tetraspark.line.start_watch import LISTENING, Look

SECONDS = 30.0


class NcclGuard:
    """Ends a start whose NCCL is not as planned, once every rank listens; a watcher of a start.

    `warn` is told of what does not end it. What cannot be seen ends nothing, and is in `checks`.
    """

    def __init__(
        self,
        nodes: NodeRunner,
        plan: Plan,
        profile: NcclProfile,
        warn: Callable[[Problem], None],
    ) -> None:
        self._nodes = nodes
        self._plan = plan
        self._profile = profile
        self._warn = warn
        self._ranks = [RankNccl(one.rank, one.node, (), {}) for one in plan.ranks]
        self.checks: tuple[Check, ...] = ()

    def __call__(self, look: Look) -> None:
        """Judge a look. Raises RunError with every check that failed."""
        if self.checks:
            return
        for line in look.lines:
            one = self._ranks[line.rank]
            log, ring = one.log.read(line.text), one.ring.read(line.text)
            self._ranks[line.rank] = replace(one, log=log, ring=ring)
        if look.phase not in LISTENING:
            return
        self.checks = tuple(nccl_start_checks(self._nodes, self._plan, self._profile, self._ranks))
        for check in self.checks:
            if check.verdict == "warning":
                self._warn(check.problem)
        failed = [check.problem for check in self.checks if check.verdict == "failed"]
        if failed:
            raise RunError(*failed)


def nccl_start_checks(
    nodes: NodeRunner, plan: Plan, profile: NcclProfile, told: Sequence[RankNccl]
) -> list[Check]:
    """Return the checks of a started line; `told` are its ranks as far as their logs tell of NCCL.

    Each rank's container is looked at from inside, all at once: the maps of another user's
    process are not for the login of a node, and paths in them are the container's.
    """
    with ThreadPoolExecutor(max(len(told), 1)) as pool:
        seen = pool.map(lambda one: _inside(nodes, plan.line, one), told)
    return start_checks(profile, list(seen))


def _inside(nodes: NodeRunner, line: str, one: RankNccl) -> RankNccl:
    """Return a rank with what its container shows, or as it was: unseen is unknown."""
    try:
        found = ask(nodes, one.node, "nccl", {}, SECONDS, container_name(line, one.rank))
    except RunError:
        return one
    return replace(
        one,
        maps=tuple(found["maps"]),
        sha256=found["sha256"],
        environment=found["environment"],
        conf=found["conf"],
    )
