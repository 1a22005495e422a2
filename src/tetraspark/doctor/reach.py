"""Whether a node can be looked at at all: over ssh, with python3."""

from collections.abc import Iterator

from tetraspark.doctor.check import Check
from tetraspark.doctor.finding import Finding
from tetraspark.doctor.node_view import NodeView
from tetraspark.errors import RunError

SSH, PYTHON = "SSH.REACHABLE", "PYTHON.PRESENT"
SSH_WANTED = "a login over ssh without a password"
PYTHON_WANTED = "python3 (3.9 or later) on the node"


def reached(view: NodeView) -> Iterator[Finding]:
    """Say how a node was reached that was looked at."""
    yield Finding("ok", f"ssh {view.login}", SSH_WANTED)


def answered(view: NodeView) -> Iterator[Finding]:
    """Say that the probe ran."""
    yield Finding("ok", "the probe ran", PYTHON_WANTED)


def unreached(node: str, error: RunError) -> list[Check]:
    """Return what is to be said of a node that could not be looked at: nothing else is known."""
    # A program that did not answer in JSON carries the parser's error; ssh's have none of these.
    answered = isinstance(error.__cause__, (ValueError, KeyError, TypeError))
    id, problem = (PYTHON if answered else SSH), error.problems[0]
    failed = Check(id, node, "failed", problem.seen, problem.wanted, problem.fix)
    return [Check(SSH, node, "ok", "reached", SSH_WANTED), failed] if id == PYTHON else [failed]
