"""What a doctor says of a line: the checks of all its nodes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tetraspark.doctor.baseline import NodeState
from tetraspark.doctor.catalogue import CATALOGUE
from tetraspark.doctor.check import Check, Verdict

REQUIRED = frozenset(one.id for one in CATALOGUE if one.required)


@dataclass(frozen=True)
class Report:
    """All checks in the order of the catalogue, each with its nodes in rank order.

    `states` are for `baseline.keep_baseline`, where all that they hold was looked at.
    """

    line: str
    nodes: tuple[str, ...]
    checks: tuple[Check, ...]
    seconds: float
    states: Mapping[str, NodeState] = field(default_factory=dict)

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that fail the run: failed ones, and required ones that could not be made."""
        return tuple(one for one in self.checks if fails(one))

    @property
    def failed(self) -> bool:
        """Whether any check fails the run."""
        return bool(self.failures)

    def count(self, verdict: Verdict) -> int:
        """Return how many checks came out so."""
        return sum(one.verdict == verdict for one in self.checks)

    def as_dict(self) -> dict[str, object]:
        """Return the report, for `--json`."""
        return {
            "ok": not self.failed,
            "line": self.line,
            "nodes": list(self.nodes),
            "seconds": round(self.seconds, 3),
            "checks": [one.as_dict() | {"fails": fails(one)} for one in self.checks],
        }


def fails(check: Check) -> bool:
    """Tell whether a check fails the run."""
    unknown = check.verdict == "unknown" and check.id in REQUIRED
    return check.verdict == "failed" or unknown
