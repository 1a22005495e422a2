"""What `tetraspark tune` found, and what speaks against keeping it."""

from dataclasses import dataclass
from typing import Any

from tetraspark.collectives.thresholds import ThresholdKey, Thresholds
from tetraspark.errors import Problem
from tetraspark.measure.tune import Decision, agree, disagreements
from tetraspark.measure.tune_measured import Measured


@dataclass(frozen=True)
class TuneReport:
    """The decision that every rank was told, and the curves it came from.

    `wrong` of the `compared` values of ours were in some bit not the sum in rank order.
    """

    key: ThresholdKey
    measured: Measured
    decision: Decision
    wrong: int
    compared: int

    @property
    def thresholds(self) -> Thresholds:
        """The decision, under its key."""
        return Thresholds(self.decision.two_shot_from, self.decision.reduce_limit, self.key)

    def problems(self) -> tuple[Problem, ...]:
        """Return every reason for which the thresholds may not be kept."""
        found = []
        if self.wrong:
            seen = f"{self.wrong} of {self.compared} values of ours are wrong"
            wanted, fix = "every bit of the sum in rank order", "tetraspark bench collectives"
            found.append(Problem("tune", seen, wanted, fix))
        repeats = self.measured.repeats
        if not agree(repeats, self.decision):
            apart = disagreements(repeats, self.decision)
            wanted = f"two repeats in three that agree to one size with all ({self.thresholds})"
            fix = "end other work on this machine, then repeat more often: tetraspark tune "
            fix += f"--repeats {2 * len(repeats) + 1}"
            found.append(Problem("tune", "; ".join(apart), wanted, fix))
        return tuple(found)

    def as_dict(self) -> dict[str, Any]:
        """Return the report, JSON-able; sizes in bytes, times in microseconds."""
        problems = self.problems()
        return {
            "ok": not problems,
            "problems": [one.as_dict() for one in problems],
            "thresholds": self.thresholds.as_dict(),
            "wrong": self.wrong,
            "compared": self.compared,
            "measured": self.measured.as_dict(),
        }
