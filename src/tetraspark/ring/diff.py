"""Diff: a plan against the nodes, changing nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tetraspark.errors import Problem, RunError
from tetraspark.fleet.command import NodeRunner
from tetraspark.ring.node_program import ask_all
from tetraspark.ring.plan import RingPlan
from tetraspark.ring.view import NodeView
from tetraspark.ring.wanted import wanted


@dataclass(frozen=True)
class Diff:
    """Every node as it is, or why it could not be seen."""

    plan: str
    nodes: Mapping[str, NodeView | RunError]

    @property
    def views(self) -> tuple[NodeView, ...]:
        """The nodes that were seen, in rank order."""
        return tuple(one for one in self.nodes.values() if isinstance(one, NodeView))

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Why nodes could not be seen."""
        errors = (one for one in self.nodes.values() if isinstance(one, RunError))
        return tuple(problem for error in errors for problem in error.problems)

    @property
    def same(self) -> bool:
        """Whether all nodes were seen and are as planned; queues that only pend are not."""
        seen = not self.problems and not any(one.wrong for one in self.views)
        queues = (queue.state for one in self.views for queue in one.hairpin)
        return seen and all(state == "in effect" for state in queues)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON-able values."""
        return {
            "plan": self.plan,
            "same": self.same,
            "nodes": {one.node: one.as_dict() for one in self.views},
            "problems": [one.as_dict() for one in self.problems],
        }


def diff(plan: RingPlan, runner: NodeRunner) -> Diff:
    """Look at every node of a plan at once."""
    asked = ((one.node, one.request("look")) for one in wanted(plan))
    answers = ask_all(runner, asked)
    return Diff(
        plan.id,
        {
            node: one if isinstance(one, RunError) else NodeView.of(node, one)
            for node, one in answers.items()
        },
    )
