"""The build of an image on several nodes at once, and whether all built the same."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tetraspark.errors import Problem, RunError
from tetraspark.fleet.command import NodeRunner
from tetraspark.fleet.login import Login
from tetraspark.fleet.state_home import require_writable
from tetraspark.images.build_log import Step
from tetraspark.images.build_plan import BuildPlan
from tetraspark.images.build_step import Phase
from tetraspark.images.built import BuiltImage
from tetraspark.images.equality import differences
from tetraspark.images.node_build import NodeBuild, Observe


@dataclass(frozen=True)
class Outcome:
    """What came of the build on one node: an image, or problems and where it stopped.

    `phase` and `step` are where it stopped, `last_lines` what the step printed at its end;
    `log` is the file with all that ssh, rsync and docker said.
    """

    node: str
    seconds: float
    log: Path
    phase: Phase
    step: Step | None
    last_lines: tuple[str, ...]
    built: BuiltImage | None
    problems: tuple[Problem, ...]

    def as_dict(self) -> dict[str, object]:
        """Return the fields, for `--json`."""
        failed = self.built is None
        return {
            "node": self.node,
            "ok": not failed,
            "seconds": round(self.seconds, 1),
            "log": str(self.log),
            "phase": self.phase if failed else "done",
            "step": str(self.step) if failed and self.step else None,
            "last_lines": list(self.last_lines) if failed else [],
            "image": self.built.as_dict() if self.built else None,
            "problems": [problem.as_dict() for problem in self.problems],
        }


@dataclass(frozen=True)
class BuildReport:
    """What came of a build: each node's outcome, and how the images differ."""

    plan: BuildPlan
    outcomes: tuple[Outcome, ...]
    differences: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        """Whether every node built, and built the same."""
        return not self.problems

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything that is wrong, node by node, then between them."""
        each = (problem for outcome in self.outcomes for problem in outcome.problems)
        return (*each, *self.differences)

    def as_dict(self) -> dict[str, object]:
        """Return JSON-able values."""
        return {
            "ok": self.ok,
            "tag": self.plan.tag,
            "recipe": self.plan.recipe,
            "base": self.plan.base,
            "context": self.plan.tree_sha256,
            "nodes": [outcome.as_dict() for outcome in self.outcomes],
            "differences": [problem.as_dict() for problem in self.differences],
        }


def build(plan: BuildPlan, runner: NodeRunner, logs: Path, observe: Observe) -> BuildReport:
    """Build a plan's context, which is written, on every node, all at once.

    A node that fails does not stop the others; its outcome says what happened. `logs` is a folder
    for one file a node. An interrupt ends what runs on the nodes and is raised again.
    Raises UsageError for a folder that cannot be written.
    """
    require_writable(logs)
    pool = ThreadPoolExecutor(len(plan.nodes))
    try:
        tasks = [pool.submit(_one, plan, one, runner, logs, observe) for one in plan.nodes]
        outcomes = tuple(task.result() for task in tasks)
    except BaseException:
        runner.interrupt()
        raise
    finally:
        pool.shutdown()
    images = {one.node: one.built for one in outcomes if one.built is not None}
    return BuildReport(plan, outcomes, tuple(differences(images, dict(plan.labels))))


def _one(
    plan: BuildPlan,
    login: Login,
    runner: NodeRunner,
    logs: Path,
    observe: Observe,
) -> Outcome:
    begun = time.monotonic()
    path = logs / f"{login.node}.log"
    image, problems = None, tuple[Problem, ...]()
    with path.open("w", encoding="utf-8") as log:
        work = NodeBuild(plan, login, runner, observe, log)
        try:
            image = work.run()
        except RunError as error:
            problems = error.problems
    return Outcome(
        node=login.node,
        seconds=time.monotonic() - begun,
        log=path,
        phase=work.phase,
        step=work.reader.step if work.phase == "build" else None,
        last_lines=work.reader.last_lines if work.phase == "build" else (),
        built=image,
        problems=tuple(_in_step(problem, work) for problem in problems),
    )


def _in_step(problem: Problem, work: NodeBuild) -> Problem:
    """Say in which step a build failed."""
    if work.phase != "build" or work.reader.step is None:
        return problem
    seen = f"{problem.seen}, in {work.reader.step}"
    return Problem(problem.where, seen, problem.wanted, problem.fix)
