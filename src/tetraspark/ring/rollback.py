"""Rollback and confirm: the two ends of an apply, on all nodes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tetraspark.errors import Problem, RunError
from tetraspark.fleet.command import NodeRunner
from tetraspark.fleet.container import LINE
from tetraspark.ring.apply import STEP_SECONDS, rollback_problems
from tetraspark.ring.diff import Diff
from tetraspark.ring.node_program import ask_all, problems_of
from tetraspark.ring.plan import RingPlan
from tetraspark.ring.view import NodeView
from tetraspark.ring.wanted import wanted

MARGIN_SECONDS = 3.0
"""What a node must have left when a confirm begins: nobody is confirmed while another gives up."""


@dataclass(frozen=True)
class RolledBack:
    """What every node undid, by node, as the node program answers; and what is not as before."""

    nodes: Mapping[str, Mapping[str, Any]]
    problems: tuple[Problem, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON-able values."""
        return {
            "ok": not self.problems,
            "nodes": dict(self.nodes),
            "problems": [one.as_dict() for one in self.problems],
        }


def rollback(names: tuple[str, ...], runner: NodeRunner) -> RolledBack:
    """Undo whatever plan is applied on nodes: what their journals own, and nothing else.

    A node with RDMA in use refuses. Nodes that refuse or cannot be reached are problems.
    """
    request = {"verb": "rollback", "by": "operator", "guarded": True, "label": LINE}
    answers = ask_all(runner, ((node, request) for node in names), STEP_SECONDS)
    problems = problems_of(answers)
    done = {node: one for node, one in answers.items() if not isinstance(one, RunError)}
    for node, one in done.items():
        problems += rollback_problems(node, one)
        fix = f"on {node}: look at it, then remove it and `netplan apply`"
        wanted = "no file that would bring the ring's addresses back"
        problems += [
            Problem(f"{node} {path}", "a leftover", wanted, fix) for path in one["leftovers"]
        ]
    return RolledBack(done, tuple(problems))


def confirm(plan: RingPlan, runner: NodeRunner, found: Diff, persist: bool) -> tuple[str, ...]:
    """Keep a plan that was just found applied on every node, with `persist` beyond a boot.

    Returns the files written, as `node path`. Raises RunError before anything is kept when a node
    cannot be seen, has something else, or has too little time left; and when one fails after
    that, in which case the others are kept and a rollback is the way back.
    """
    problems = list(found.problems)
    for view in found.views:
        problems += _not_confirmable(view, plan.id)
    if problems:
        raise RunError(*problems)
    nodes = wanted(plan)
    files = {one.node: one.files if persist else () for one in nodes}
    asked = ((one.node, one.request("confirm", files=files[one.node])) for one in nodes)
    answers = ask_all(runner, asked)
    problems = problems_of(answers)
    if problems:
        kept = [node for node, one in answers.items() if not isinstance(one, RunError)]
        wanted_text = "every node to keep it, or none"
        seen = f"confirmed on {', '.join(kept) or 'no node'} only"
        problems.append(Problem("ring", seen, wanted_text, "tetraspark ring rollback"))
        raise RunError(*problems)
    return tuple(
        f"{node} {key.removeprefix('file ')}"
        for node, one in answers.items()
        if not isinstance(one, RunError)
        for key in one["files"]
    )


def _not_confirmable(view: NodeView, plan: str) -> list[Problem]:
    wanted_text, fix = "the plan applied, as planned, with time left", "tetraspark ring apply PLAN"
    journal = view.journal
    if journal is None or journal.phase == "prepared":
        by = f"; the last rollback was by {view.last['by']}" if view.last else ""
        return [Problem(view.node, f"nothing is applied{by}", wanted_text, fix)]
    if journal.plan != plan:
        seen = f"plan {journal.plan[:12]} is {journal.phase}"
        return [Problem(view.node, seen, f"plan {plan[:12]}", "confirm the plan that is applied")]
    if journal.phase not in ("applied", "confirmed"):
        return [Problem(view.node, f"the apply is {journal.phase}", wanted_text, fix)]
    if journal.seconds_left is not None and journal.seconds_left < MARGIN_SECONDS:
        seen = f"{max(journal.seconds_left, 0):.1f} s left before it goes back"
        return [Problem(view.node, seen, wanted_text, fix)]
    return [
        Problem(f"{view.node} {one.key}", f"{one.state}: {one.detail}", wanted_text, fix)
        for one in view.wrong
    ]
