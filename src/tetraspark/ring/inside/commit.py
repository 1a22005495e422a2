"""Prepare and commit: the two phases of an apply, on one node: runs inside the node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tetraspark.ring.inside import journal as journals
from tetraspark.ring.inside import marker, snapshot, timer
from tetraspark.ring.inside.guards import guard
from tetraspark.ring.inside.journal import Entry, Journal
from tetraspark.ring.inside.judge import Judged, judge, refusals
from tetraspark.ring.inside.kind import Kind
from tetraspark.ring.inside.say import Refusal, problem
from tetraspark.ring.inside.seen import Seen
from tetraspark.ring.inside.store import locked


@dataclass(frozen=True)
class Request:
    """What an apply wants of this node: a plan's objects, in the order of their kinds.

    `devices` are the planned network devices; `label` is what containers of a line carry;
    `source` is the marker program's.
    """

    plan: str
    token: str
    objects: tuple[Kind, ...]
    devices: tuple[str, ...]
    label: str
    source: str

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Request:
        """Return the request of the JSON object that was sent."""
        order = list(journals.KINDS)
        wanted = sorted(fields["objects"], key=lambda one: order.index(one["kind"]))
        return cls(
            plan=fields["plan"],
            token=fields["token"],
            objects=tuple(journals.read_object(one) for one in wanted),
            devices=tuple(fields["devices"]),
            label=fields["label"],
            source=fields["source"],
        )

    @property
    def destinations(self) -> list[str]:
        """The addresses that get a route."""
        fields = (one.as_dict() for one in self.objects)
        return [one["destination"] for one in fields if one["kind"] == "route"]


def judged(request: Request, journal: Journal | None, seen: Seen) -> list[Judged]:
    """Look at every planned object."""
    return [judge(one, seen, journal) for one in request.objects]


def prepare(request: Request) -> dict[str, Any]:
    """Check all, take the snapshot, and reserve the node for this apply; change nothing else.

    Raises Refusal with every reason at once.
    """
    with locked():
        journal = journals.read()
        _refuse_other_plan(journal, request.plan)
        found = judged(request, journal, Seen())
        steps = [one for one in found if one.step]
        bad = refusals(found)
        if steps:
            bad += guard(list(request.devices), request.destinations, request.label)
        if bad:
            raise Refusal(*bad)
        if steps:
            marker.build(request.source)
        if journal is None or journal.phase == "prepared":
            snapshot.take(request.token, list(request.devices))
            journal = Journal(
                plan=request.plan,
                token=request.token,
                snapshot=request.token,
                phase="prepared",
                devices=list(request.devices),
                boot=journals.boot_id(),
            )
            journal.save()
        return {
            "steps": [one.as_dict() for one in steps],
            "present": len(found) - len(steps),
            "phase": journal.phase,
        }


def commit(request: Request, seconds: float) -> dict[str, Any]:
    """Put every object in place; the timer that undoes it all runs before the first change.

    Raises Refusal at the first step that fails, and when the result is not as planned: what was
    done until then stays for the rollback.
    """
    with locked():
        journal = journals.read()
        _refuse_other_plan(journal, request.plan)
        if journal is None:
            wanted, fix = "a node that was prepared", "tetraspark ring apply PLAN"
            raise Refusal(problem("ring", "nothing is prepared here", wanted, fix))
        journal.token, journal.phase, journal.boot = request.token, "committing", journals.boot_id()
        journal.deadline = journals.since_boot() + seconds
        journal.save()
        journal.timer = timer.start(request.token)
        journal.save()
        done, seen = 0, Seen()
        for thing in request.objects:
            if _settle(thing, journal, seen):
                done, seen = done + 1, Seen()
        _prove(request, journal)
        journal.phase = "applied"
        journal.save()
        return {"done": done, "seconds_left": journal.seconds_left}


def abandon(token: str) -> dict[str, Any]:
    """Release a node that was prepared and not committed."""
    with locked():
        journal = journals.read()
        if journal is not None and journal.token == token and journal.phase == "prepared":
            journals.drop()
    return {}


def _refuse_other_plan(journal: Journal | None, plan: str) -> None:
    if journal is None or journal.phase == "prepared":
        return
    fix = "tetraspark ring rollback"
    if journal.plan != plan:
        seen = f"plan {journal.plan[:12]} is {journal.phase} here"
        raise Refusal(problem("ring", seen, f"no other plan than {plan[:12]}", fix))
    if journal.phase == "rolling-back":
        raise Refusal(problem("ring", "a rollback was cut off here", "a node rolled back", fix))


def _settle(thing: Kind, journal: Journal, seen: Seen) -> bool:
    """Bring one object to what is planned, intention first; says whether that changed anything."""
    one = judge(thing, seen, journal)
    bad = refusals([one])
    if bad:
        raise Refusal(*bad)
    known = journal.entry(thing.key)
    if one.state == "present":
        if known is None or not known.done:
            entry = known or one.entry()
            journal.intend(Entry(entry.fields, entry.how, entry.before, done=True))
        return False
    # What was there before the first change is what a rollback restores, not what came between.
    entry = known if known is not None and known.how != "adopted" else one.entry()
    journal.intend(Entry(thing.as_dict(), entry.how, entry.before))
    thing.make()
    journal.did(journal.entries[-1])
    return True


def _prove(request: Request, journal: Journal) -> None:
    """Look again at everything: what is not as planned by now is a failure."""
    wrong = [one for one in judged(request, journal, Seen()) if one.state != "present"]
    if wrong:
        wanted, fix = "the state `present` right after it was made", "ip -V; tc -V; dmesg | tail"
        raise Refusal(
            *(
                problem(one.object.key, f"{one.state}: {one.look.detail}", wanted, fix)
                for one in wrong
            )
        )
