"""Share the checkpoint over NFS: plan from what the nodes have, apply, and read it back."""

from dataclasses import dataclass, replace
from typing import Any

from tetraspark.doctor.check import Check
from tetraspark.errors import Problem, RunError
from tetraspark.fleet.command import NodeCommand, NodeRunner
from tetraspark.fleet.facts import Facts
from tetraspark.fleet.probe import probe_all
from tetraspark.site.schema import Site
from tetraspark.weights.each_node import on_each, parted
from tetraspark.weights.mount import MODEL_MOUNT, model_mount, nfs_volume
from tetraspark.weights.node_program import Observe, Progress
from tetraspark.weights.place import Place
from tetraspark.weights.share_plan import SharePlan, Step, wanted_on
from tetraspark.weights.tally import take_tally

STEP_SECONDS = 60.0
READ_SECONDS = 120.0


@dataclass(frozen=True)
class Shared:
    """The steps that were done, the problem that stopped them, and what containers read then."""

    done: tuple[Step, ...]
    problems: tuple[Problem, ...]
    checks: tuple[Check, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every step was done and every worker reads the checkpoint."""
        return not self.problems and all(check.verdict == "ok" for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        return {
            "ok": self.ok,
            "done": [step.as_dict() for step in self.done],
            "checks": [check.as_dict() for check in self.checks],
            "problems": [problem.as_dict() for problem in self.problems],
        }


def look(site: Site, place: Place, runner: NodeRunner, observe: Observe) -> dict[str, Facts]:
    """Look at every node. Raises RunError when one cannot be looked at."""
    for node in place.nodes:
        observe(Progress(node, "look"))
    found = probe_all(runner, {node: wanted_on(site, place, node) for node in place.nodes})
    facts, problems = parted(found)
    if problems:
        raise RunError(*problems)
    return facts


def share(
    site: Site, place: Place, plan: SharePlan, runner: NodeRunner, observe: Observe
) -> Shared:
    """Do the steps of a plan; when all are done, look whether each worker reads the checkpoint."""
    done = apply(plan.steps, runner, observe)
    return replace(done, checks=read_back(site, place, runner, observe)) if done.ok else done


def apply(steps: tuple[Step, ...], runner: NodeRunner, observe: Observe) -> Shared:
    """Do the steps in order, and stop at the first that fails: its problem tells what it said."""
    done: list[Step] = []
    for step in steps:
        observe(Progress(step.node, "do", text=" ".join(step.words)))
        command = NodeCommand(step.words, step.stdin.encode(), STEP_SECONDS)
        try:
            result = runner.run(step.node, command)
        except RunError as error:
            return Shared(tuple(done), error.problems)
        if result.rc:
            return Shared(tuple(done), (_failed(step, command, result.rc, result.stderr),))
        done.append(step)
    return Shared(tuple(done), ())


def read_back(site: Site, place: Place, runner: NodeRunner, observe: Observe) -> tuple[Check, ...]:
    """List the checkpoint in a container of the line's image on each worker, and compare names."""
    assert site.image is not None, "the site refuses a fleet without an image"
    tag = site.image.tag
    ranks = {
        node: rank for rank, node in enumerate(place.nodes) if nfs_volume(site, rank) is not None
    }
    expected: set[str] | None = None
    if place.head in place.holders:
        tally = take_tally(runner, place.head, place.path, observe, hashed=False)
        expected = {name.split("/")[0] for name in tally.files}

    def one(node: str) -> Check:
        observe(Progress(node, "read", text=tag))
        mount = model_mount(site, ranks[node], "/")
        words = (
            "docker",
            "run",
            "--rm",
            "--pull=never",
            "--network=none",
            "--entrypoint=ls",
            *mount,
            tag,
        )
        command = NodeCommand((*words, "-1", MODEL_MOUNT), timeout=READ_SECONDS)
        found = runner.run(node, command)
        return read_check(node, str(command), found.rc, found.stdout, found.stderr, expected)

    found = on_each(runner, ranks, one)
    return tuple(_check(node, one) for node, one in found.items())


def read_check(
    node: str, command: str, rc: int, stdout: str, stderr: str, expected: set[str] | None
) -> Check:
    """Return what it means how a container that lists the checkpoint ended."""
    name, wanted = "WEIGHTS.READ", f"the checkpoint at {MODEL_MOUNT} in a container"
    said = (stderr.strip().splitlines() or [f"exit code {rc}"])[0][:300]
    if rc and ("Unable to find image" in stderr or "No such image" in stderr):
        fix = "tetraspark build, then: tetraspark weights share --apply"
        return Check(name, node, "unknown", "no image to look with", wanted, fix)
    if rc:
        fix = f"on the server: showmount -e; sudo ss -ltn sport = 2049; then on {node}: {command}"
        return Check(name, node, "failed", said, wanted, fix)
    names = set(stdout.split("\n")) - {""}
    missing = sorted((expected or set()) - names)
    if missing or not names:
        seen = f"missing: {', '.join(missing)}" if missing else "an empty folder"
        fix = "on the server: does the exported path hold the checkpoint? findmnt; exportfs -v"
        return Check(name, node, "failed", seen, wanted, fix)
    return Check(name, node, "ok", f"{len(names)} entries", wanted)


def _check(node: str, found: Check | RunError) -> Check:
    if isinstance(found, Check):
        return found
    problem = found.problems[0]
    fix = problem.fix or "run the same command again"
    return Check("WEIGHTS.READ", node, "unknown", problem.seen, problem.wanted, fix)


def _failed(step: Step, command: NodeCommand, rc: int, stderr: str) -> Problem:
    said = (stderr.strip().splitlines() or [f"exit code {rc}"])[-1][:300]
    wanted, fix = "its end", f"on {step.node}: {command}"
    if "password is required" in stderr or "a terminal is required" in stderr:
        wanted = "root without a password, or the steps done by you"
        fix = f"log in to {step.node} and run what `tetraspark weights share` prints"
    return Problem(f"{step.node}: {command}", said, wanted, fix)
