"""What a check found, before it is known which check it was: judges make these."""

from dataclasses import dataclass

from tetraspark.doctor.check import Check, Verdict


@dataclass(frozen=True)
class Finding:
    """A verdict with what was observed, what is wanted, and the next command to type.

    `node` is for findings of a fleet-wide check that are of one node.
    """

    verdict: Verdict
    observed: str
    wanted: str
    fix: str = ""
    node: str | None = None

    def as_check(self, id: str, node: str | None = None) -> Check:
        """Return the finding under the ID of its check."""
        fix = "" if self.verdict == "ok" else self.fix
        return Check(id, self.node or node, self.verdict, self.observed, self.wanted, fix)


def of_check(check: Check) -> Finding:
    """Return a check that was made elsewhere as a finding."""
    return Finding(check.verdict, check.observed, check.wanted, check.fix, check.node)
