"""Status: what is applied on each node, for how long, and whether its receipt still holds. Pure."""

from dataclasses import dataclass
from typing import Any

from tetraspark.ring.diff import Diff
from tetraspark.ring.receipt import Receipt, stale
from tetraspark.ring.view import NodeView


@dataclass(frozen=True)
class RingStatus:
    """The nodes as they are, and the last receipt. A node not seen is not known to have failed."""

    found: Diff
    receipt: Receipt | None

    @property
    def changed(self) -> tuple[str, ...]:
        """What the receipt no longer holds for; empty without a receipt."""
        if self.receipt is None:
            return ()
        seen = {one.node: one.identity for one in self.found.views}
        return stale(self.receipt, self.found.plan, seen)

    @property
    def fresh(self) -> bool:
        """Whether there is a receipt that passed, and holds for all of this."""
        return self.receipt is not None and self.receipt.passed and not self.changed

    @property
    def well(self) -> bool:
        """Whether the plan is confirmed and in place on every node, with a fresh receipt."""
        phases = {phase(one, self.found.plan) for one in self.found.views}
        return self.found.same and phases == {"confirmed"} and self.fresh

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON-able values."""
        return {
            "well": self.well,
            "phases": {one.node: phase(one, self.found.plan) for one in self.found.views},
            "receipt": None if self.receipt is None else self.receipt.id,
            "fresh": self.fresh,
            "changed": list(self.changed),
            "diff": self.found.as_dict(),
        }


def phase(view: NodeView, plan: str) -> str:
    """Return in words how far a plan is on a node."""
    journal = view.journal
    if journal is None or journal.phase == "prepared":
        return "not applied"
    if journal.plan != plan:
        return f"plan {journal.plan[:12]} {journal.phase}"
    if not journal.this_boot:
        return f"{journal.phase} before the last boot"
    if journal.phase == "confirmed":
        return "confirmed"
    left = max(journal.seconds_left or 0.0, 0.0)
    timer = "" if journal.timer else "; its timer is dead: roll back by hand"
    return f"{journal.phase}, {left:.0f} s left{timer}"
