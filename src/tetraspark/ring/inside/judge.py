"""What to do about each planned object, given what is there and whose it is: inside the node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tetraspark.ring.inside.journal import Entry, Journal
from tetraspark.ring.inside.kind import Kind, Look
from tetraspark.ring.inside.say import problem
from tetraspark.ring.inside.seen import Seen


@dataclass(frozen=True)
class Judged:
    """An object and its state; `conflict` is a different thing that is not ours to replace."""

    object: Kind
    look: Look
    state: str
    owned: bool

    @property
    def step(self) -> bool:
        """Whether something is to be done about it."""
        return self.state in ("missing", "different", "not-in-hardware")

    def entry(self) -> Entry:
        """Return what the journal gets when it is done, or found there."""
        fields = self.object.as_dict()
        if self.state == "present":
            return Entry(fields, "adopted", done=True)
        if self.look.before is not None:
            return Entry(fields, "set", self.look.before)
        return Entry(fields, "made")

    def as_dict(self) -> dict[str, Any]:
        """Return it as the caller shows it."""
        kind = self.object.as_dict()["kind"]
        return {
            "key": self.object.key,
            "kind": kind,
            "state": self.state,
            "detail": self.look.detail,
            "owned": self.owned,
        }


def judge(thing: Kind, seen: Seen, journal: Journal | None) -> Judged:
    """Look at an object. Another's thing in its place is a conflict, ours is to be mended."""
    look = thing.look(seen)
    owned = journal is not None and journal.owns(thing.key)
    state = look.state
    mendable = look.settable or (owned and look.marked)
    if state in ("different", "not-in-hardware") and not mendable:
        state = "conflict"
    return Judged(thing, look, state, owned)


def refusals(judged: list[Judged]) -> list[dict[str, str]]:
    """Return a problem for every object that keeps the plan from being put in place."""
    found = []
    for one in judged:
        if one.state == "conflict":
            wanted = "nothing there, or exactly what is planned: what others put is never replaced"
            fix = "find out whose it is, and remove it there; or plan again"
            found.append(problem(one.object.key, one.look.detail, wanted, fix))
        if one.state == "no-link":
            wanted = "a device that is there and has its link"
            fix = "look at the cable; ip link; tetraspark fabric"
            found.append(problem(one.object.key, one.look.detail, wanted, fix))
    return found
