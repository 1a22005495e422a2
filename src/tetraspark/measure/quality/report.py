"""What came of the tasks, and what follows from it. Pure."""

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from tetraspark.measure.quality.task import KINDS, Kind

Verdict = Literal["right", "wrong", "error", "not run"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""From the best to the worst."""


@dataclass(frozen=True)
class Outcome:
    """What came of one attempt at a task. Tokens are the server's; seconds those of the request.

    `sent` and `ended` are monotonic seconds, None for a task that was not asked.
    """

    id: str
    kind: Kind
    attempt: int
    verdict: Verdict
    why: str
    answer: str = ""
    completion_tokens: int | None = None
    sent: float | None = None
    ended: float | None = None

    @property
    def seconds(self) -> float | None:
        """From the request to the end of the answer."""
        return None if self.sent is None or self.ended is None else self.ended - self.sent

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for a report: moments of this machine's clock say nothing there."""
        fields = asdict(self) | {"seconds": self.seconds}
        return {name: fields[name] for name in fields if name not in ("sent", "ended")}


@dataclass(frozen=True)
class QualityReport:
    """All outcomes. A task is right when every attempt at it was."""

    outcomes: tuple[Outcome, ...]
    require: int | None = None

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """The worst verdict of each task, by its ID."""
        worst: dict[str, Verdict] = {}
        for one in self.outcomes:
            worst[one.id] = max(worst.get(one.id, "right"), one.verdict, key=VERDICTS.index)
        return worst

    @property
    def right(self) -> int:
        """How many tasks are right."""
        return list(self.verdicts.values()).count("right")

    @property
    def scored(self) -> int:
        """How many tasks have a score: those that failed or were not run have none."""
        return sum(verdict in ("right", "wrong") for verdict in self.verdicts.values())

    @property
    def faults(self) -> tuple[str, ...]:
        """Every reason for which the suite did not pass; a wrong answer alone is none."""
        verdicts = list(self.verdicts.values())
        found = [
            f"{verdicts.count(verdict)} tasks: {verdict}"
            for verdict in ("error", "not run")
            if verdict in verdicts
        ]
        if self.require is not None and self.right < self.require:
            found.append(f"{self.right} right, {self.require} required")
        return tuple(found)

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens of all answers over the time from the first request to the last answer's end."""
        asked = [one for one in self.outcomes if one.sent is not None and one.ended is not None]
        tokens = [one.completion_tokens for one in asked if one.completion_tokens is not None]
        if not tokens:
            return None
        begin = min(one.sent for one in asked if one.sent is not None)
        return sum(tokens) / (max(one.ended for one in asked if one.ended is not None) - begin)

    def totals(self) -> dict[Kind, dict[Verdict, int]]:
        """Return how many tasks of each kind have each verdict."""
        kinds = {one.id: one.kind for one in self.outcomes}
        found = {kind: dict.fromkeys(VERDICTS, 0) for kind in KINDS if kind in kinds.values()}
        for name, verdict in self.verdicts.items():
            found[kinds[name]][verdict] += 1
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return the outcomes and what follows from them, for a report."""
        return {
            "outcomes": [one.as_dict() for one in self.outcomes],
            "totals": self.totals(),
            "right": self.right,
            "scored": self.scored,
            "asked_for": len(self.verdicts),
            "require": self.require,
            "faults": self.faults,
            "tokens_per_second": self.tokens_per_second,
        }
