"""A check: a named finding with a stable ID, what was observed, what is wanted, and the fix."""

import re
from dataclasses import asdict, dataclass
from typing import Literal

from tetraspark.errors import Problem

Verdict = Literal["ok", "warning", "failed", "unknown"]
ID = re.compile(r"[A-Z][A-Z0-9]*(\.[A-Z][A-Z0-9_]*)+")


@dataclass(frozen=True)
class Check:
    """What one check found on one node, or on the fleet as a whole (`node` is None).

    `unknown` means that it could not be seen, which is never taken for `ok`. Raises ValueError
    for an ID that is not of the form `SUBJECT.NAME`, and for a finding without a way on.
    """

    id: str
    node: str | None
    verdict: Verdict
    observed: str
    wanted: str
    fix: str = ""

    def __post_init__(self) -> None:
        if not ID.fullmatch(self.id):
            raise ValueError(f"not the ID of a check: {self.id!r}")
        if self.verdict != "ok" and not self.fix:
            raise ValueError(f"{self.id} says what is wrong, and not what to do")

    @property
    def problem(self) -> Problem:
        """The finding as an error shows it."""
        where = f"{self.node} {self.id}" if self.node else self.id
        return Problem(where, self.observed, self.wanted, self.fix)

    def as_dict(self) -> dict[str, str | None]:
        """Return the fields, for `--json`."""
        return asdict(self)
