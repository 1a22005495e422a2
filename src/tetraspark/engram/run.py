"""Pack or verify on all nodes at once, and what came of it."""

import shlex
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from tetraspark.engram.plan import NodePack, PackPlan
from tetraspark.engram.program import script
from tetraspark.engram.request import Event, read_event
from tetraspark.errors import Problem, RunError
from tetraspark.fleet.children import Children
from tetraspark.fleet.command import NodeCommand, OnLine, Result
from tetraspark.fleet.inside.look import space

PACK_SECONDS = 12 * 3600.0
ASK_SECONDS = 60.0

Run = Callable[[str, NodeCommand, OnLine | None], Result]
"""Runs a command on a node, as `NodeRunner.run` does."""
Observe = Callable[[str, Event], None]
"""Gets each event of a node's program, from a thread of that node."""


@dataclass(frozen=True)
class Shard:
    """How one shard is: "packed" now, "whole" already, or "verified", maybe with faults."""

    name: str
    state: str
    bytes: int
    faults: tuple[str, ...] = ()


@dataclass(frozen=True)
class NodeReport:
    """What came of a node's part; `again` is the command that packs it."""

    node: str
    rank: int
    shards: tuple[Shard, ...] = ()
    problems: tuple[Problem, ...] = ()
    again: tuple[str, ...] = ()

    @property
    def found(self) -> tuple[Problem, ...]:
        """Every problem of the node: what stopped it, and the faults of its shards."""
        fix = shlex.join((*self.again, "--replace"))
        faults = [
            Problem(f"{self.node} {one.name}", fault, "the shard as it was packed", fix)
            for one in self.shards
            for fault in one.faults
        ]
        return (*self.problems, *faults)


@dataclass(frozen=True)
class PackReport:
    """What came of a plan; the nodes in rank order."""

    mode: str
    nodes: tuple[NodeReport, ...] = field(default=())

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Every problem of every node."""
        return tuple(problem for node in self.nodes for problem in node.found)

    def as_dict(self) -> dict[str, Any]:
        """Return it for `--json`."""
        return {
            "ok": not self.problems,
            "mode": self.mode,
            "nodes": [
                {"node": node.node, "rank": node.rank, "shards": [vars(one) for one in node.shards]}
                for node in self.nodes
            ],
            "problems": [problem.as_dict() for problem in self.problems],
        }


class Runner(Protocol):
    """What of a `NodeRunner` a plan needs: SshRunner, and Here."""

    def run(self, node: str, command: NodeCommand, on_line: OnLine | None = None) -> Result:
        """Run a command on a node to its end."""
        ...

    def interrupt(self) -> None:
        """End what runs now, and start nothing more."""
        ...


class Here:
    """Runs commands on this machine, whatever the node is called."""

    def __init__(self) -> None:
        self._children = Children()

    def run(self, node: str, command: NodeCommand, on_line: OnLine | None = None) -> Result:
        """Run a command to its end. Raises RunError when it cannot be started or was ended."""
        try:
            return self._children.run(command.argv, command.timeout, command.stdin, on_line)
        except OSError as error:
            seen, fix = f"{command.argv[0]}: {error}", "install it"
            raise RunError(Problem(node, seen, "python3 (3.9 or later)", fix)) from error

    def interrupt(self) -> None:
        """End what runs now, and start nothing more."""
        self._children.end()


def with_room(plan: PackPlan) -> PackPlan:
    """Return a plan for this machine with the free room of each folder, or its nearest parent."""
    parts = (replace(part, free=space(part.folder)["free"]) for part in plan.nodes)
    return replace(plan, nodes=tuple(parts))


def run_plan(plan: PackPlan, runner: Runner, observe: Observe) -> PackReport:
    """Do the plan on all nodes at once; one that fails does not stop the others.

    An interrupt ends what runs on the nodes and is raised again.
    """

    def one(part: NodePack) -> NodeReport:
        try:
            return _run_node(part, runner.run, observe)
        except RunError as error:
            return NodeReport(part.node, part.rank, problems=error.problems)

    with ThreadPoolExecutor(max(len(plan.nodes), 1)) as pool:
        tasks = [pool.submit(one, part) for part in plan.nodes]
        try:
            return PackReport(plan.mode, tuple(task.result() for task in tasks))
        except BaseException:
            runner.interrupt()
            raise


def _run_node(part: NodePack, run: Run, observe: Observe) -> NodeReport:
    for argv in part.before:
        done = run(part.node, NodeCommand(argv, timeout=ASK_SECONDS), None)
        if done.rc:
            wanted = f"{' '.join(argv)} to succeed on the node"
            fix = "tetraspark weights share" if "volume" in argv else shlex.join(argv)
            raise RunError(Problem(part.node, last_line(done), wanted, fix))
    shards, problems, ended = list[Shard](), list[Problem](), []

    def on_line(line: str) -> None:
        event = read_event(line)
        if event is None:
            return
        if event.event == "problem":
            problems.append(event.problem(part.node))
        elif event.event == "end":
            ended.append(True)
        elif event.event != "progress":
            shards.append(_shard(event))
        observe(part.node, event)

    done = run(part.node, NodeCommand(part.argv, script(part.request), PACK_SECONDS), on_line)
    if not ended and not problems:
        seen = f"{part.argv[0]} ended with {done.rc}: {last_line(done)}"
        wanted = "the program's end; what is packed stays"
        fix = "the same command goes on from there; python3 (3.9 or later) is needed"
        problems.append(Problem(part.node, seen, wanted, fix))
    return NodeReport(part.node, part.rank, tuple(shards), tuple(problems), part.again)


def _shard(event: Event) -> Shard:
    words = event.words
    return Shard(words["shard"], event.event, words["bytes"], tuple(words.get("faults", ())))


def last_line(done: Result) -> str:
    """Return the last words of a command, for a problem."""
    return (done.stderr.strip().splitlines() or ["it said nothing"])[-1][:300]
