"""One check of a served line, and what becomes of a request that fails."""

from collections.abc import Callable
from dataclasses import dataclass

from tetraspark.errors import RunError


@dataclass(frozen=True)
class Check:
    """One check: its stable ID, whether it holds, and what was observed and wanted."""

    id: str
    ok: bool
    observed: str
    wanted: str


def checked(id: str, check: Callable[[], Check]) -> Check:
    """Run a check; a request that fails is a check that fails."""
    try:
        return check()
    except RunError as error:
        problem = error.problems[0]
        return Check(id, False, problem.seen, problem.wanted)
