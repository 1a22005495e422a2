"""Apply: a plan on all nodes or on none, in two phases, undone unless somebody confirms."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tetraspark.errors import Problem, RunError
from tetraspark.fleet.command import NodeRunner
from tetraspark.ring.node_program import ask, ask_all, problems_of
from tetraspark.ring.plan import RingPlan
from tetraspark.ring.wanted import NodeWanted, wanted

CONFIRM_SECONDS = 120.0
STEP_SECONDS = 180.0

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Applied:
    """What an apply did. `done` counts changes by node; none anywhere leaves all as it was.

    `seconds_left` is of the node that goes back first; None when nothing was to be done.
    """

    plan: str
    token: str
    done: Mapping[str, int]
    present: Mapping[str, int]
    seconds_left: float | None

    @property
    def changed(self) -> bool:
        """Whether anything was changed."""
        return self.seconds_left is not None

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON-able values."""
        return asdict(self)


def apply(
    plan: RingPlan,
    runner: NodeRunner,
    seconds: float = CONFIRM_SECONDS,
    tell: Tell = lambda text: None,
) -> Applied:
    """Put a plan in place on every node; each undoes it after `seconds` unless it is confirmed.

    First every node checks everything and keeps a snapshot, then one after the other changes.
    Raises RunError, after all of it was undone, when any node refuses, fails or is lost; a lost
    node undoes its part by its own timer.
    """
    nodes, token = wanted(plan), secrets.token_hex(8)
    tell("preparing")
    prepared = _prepare(nodes, runner, token)
    present = {node: answer["present"] for node, answer in prepared.items()}
    done = dict.fromkeys(prepared, 0)
    settled = all(one["phase"] in ("applied", "confirmed") for one in prepared.values())
    if settled and not any(one["steps"] for one in prepared.values()):
        return Applied(plan.id, token, done, present, None)
    left = seconds
    for one in nodes:
        tell(f"committing {one.node}")
        try:
            answer = ask(
                runner, one.node, one.request("commit", token, seconds=seconds), STEP_SECONDS
            )
        except BaseException as error:
            said = _undo(nodes, runner, seconds)
            if isinstance(error, RunError):
                raise RunError(*error.problems, *said) from error
            raise
        done[one.node] = answer["done"]
        left = min(left, answer["seconds_left"])
    return Applied(plan.id, token, done, present, left)


def _prepare(
    nodes: Sequence[NodeWanted], runner: NodeRunner, token: str
) -> dict[str, dict[str, Any]]:
    """Prepare all nodes at once; release them again when one refuses."""
    answers = ask_all(
        runner, ((one.node, one.request("prepare", token)) for one in nodes), STEP_SECONDS
    )
    bad = problems_of(answers)
    if bad:
        ready = [one for one in nodes if not isinstance(answers[one.node], RunError)]
        ask_all(runner, ((one.node, one.request("abandon", token)) for one in ready))
        raise RunError(*bad)
    return {node: one for node, one in answers.items() if not isinstance(one, RunError)}


def _undo(nodes: Sequence[NodeWanted], runner: NodeRunner, seconds: float) -> list[Problem]:
    """Undo the plan everywhere, also where an earlier apply put it; return what could not be."""
    back = {"by": "apply", "guarded": False}
    asked = ((one.node, one.request("rollback", None, **back)) for one in nodes)
    said: list[Problem] = []
    for node, answer in ask_all(runner, asked, STEP_SECONDS).items():
        if isinstance(answer, RunError):
            fix = f"wait {seconds:g} s, then: tetraspark ring status; tetraspark ring rollback"
            cause = answer.problems[0].seen
            seen = f"could not be asked to roll back: {cause}"
            wanted = "its own timer to undo its part"
            said.append(Problem(node, seen, wanted, fix))
        else:
            said += rollback_problems(node, answer)
    return said


def rollback_problems(node: str, answer: Mapping[str, Any]) -> list[Problem]:
    """Return what a rollback left behind or found changed, as problems."""
    found = [
        Problem(f"{node} {one['where']}", one["seen"], one["wanted"], one["fix"])
        for one in answer["failed"]
    ]
    fix = f"on {node}: look at it; nothing of it is ours any more"
    found += [
        Problem(node, f"left alone: {one}", "what the apply put there", fix)
        for one in answer["left"]
    ]
    fix = "find out who changed it; the snapshot is in /var/lib/tetraspark/ring/snapshots"
    found += [
        Problem(node, one, "the state before the apply", fix) for one in answer["differences"]
    ]
    return found
