"""Confirm: the timer ends, and with `persist` the files that outlive a reboot: inside the node."""

from __future__ import annotations

import time
from typing import Any

from tetraspark.ring.inside import files
from tetraspark.ring.inside import journal as journals
from tetraspark.ring.inside.journal import Entry, Journal
from tetraspark.ring.inside.judge import Judged, judge, refusals
from tetraspark.ring.inside.kind import Kind
from tetraspark.ring.inside.say import Refusal, problem, run
from tetraspark.ring.inside.seen import Seen
from tetraspark.ring.inside.store import locked

LINK_SECONDS = 120.0


def judged(planned: list[Kind], journal: Journal | None, seen: Seen) -> list[Judged]:
    """Look at the planned files."""
    return [judge(one, seen, journal) for one in planned]


def confirm(asked: dict[str, Any]) -> dict[str, Any]:
    """Keep what is applied. Nothing that outlives a reboot exists before this.

    Raises Refusal when it is too late, and before anything is written when a file is in the way.
    """
    planned = [journals.read_object(one) for one in asked["files"]]
    with locked():
        journal = journals.read()
        _refuse(journal, asked)
        assert journal is not None
        bad = refusals(judged(planned, journal, Seen())) + _outvoted(planned, journal)
        if bad:
            raise Refusal(*bad)
        for one in planned:
            _write(one, journal)
        if planned:
            run(["systemctl", "daemon-reload"])
        journal.phase = "confirmed"
        journal.save()
        return {"files": [one.key for one in planned]}


def restore() -> dict[str, Any]:
    """After a boot: put back what a confirmed journal owns. Never removes anything.

    Raises Refusal for what is not possible; the unit that runs this shows it.
    """
    _wait_for_links()
    with locked():
        journal = journals.read()
        if journal is None or journal.phase != "confirmed":
            return {"done": 0}
        done = 0
        order = list(journals.KINDS)
        for entry in sorted(journal.entries, key=lambda one: order.index(one.fields["kind"])):
            one = judge(entry.object, Seen(), journal)
            if one.state == "present":
                continue
            bad = refusals([one])
            if bad:
                raise Refusal(*bad)
            # What was somebody's before the boot and is not there after it is ours from here on.
            how = "made" if entry.how == "adopted" else entry.how
            journal.intend(Entry(entry.fields, how, entry.before))
            one.object.make()
            journal.did(journal.entries[-1])
            done += 1
        journal.boot = journals.boot_id()
        journal.save()
        return {"done": done}


def _refuse(journal: Journal | None, asked: dict[str, Any]) -> None:
    wanted, fix = "the plan applied, and time left", "tetraspark ring apply PLAN"
    if journal is None or journal.phase == "prepared":
        raise Refusal(problem("ring", "nothing is applied here any more", wanted, fix))
    if journal.plan != asked["plan"]:
        seen = f"plan {journal.plan[:12]} is applied here, not {asked['plan'][:12]}"
        raise Refusal(problem("ring", seen, wanted, "confirm the plan that is applied"))
    if journal.phase not in ("applied", "confirmed"):
        raise Refusal(problem("ring", f"the apply is {journal.phase}", wanted, fix))
    if journal.phase == "applied" and journal.seconds_left <= 0:
        raise Refusal(problem("ring", "its time is over", wanted, fix))


def _outvoted(planned: list[Kind], journal: Journal) -> list[dict[str, str]]:
    """Refuse a netplan file of ours whose values a later file, or NetworkManager's, overrules."""
    own = {one.as_dict()["path"] for one in planned}
    speaking = files.speaking_of(journal.devices, own) if own else []
    wanted = "no file after ours that speaks of the ring's devices: the last one wins"
    return [
        problem(
            path, "names a device of the ring, and is read after our file", wanted, f"rm {path}"
        )
        for path in files.later(speaking, own)
    ]


def _write(thing: Kind, journal: Journal) -> None:
    one = judge(thing, Seen(), journal)
    if one.state == "present":
        return
    entry = Entry(thing.as_dict(), "made")
    journal.intend(entry)
    thing.make()
    journal.did(entry)


def _wait_for_links() -> None:
    """Wait until the journal's devices have their links; what is still down then is refused."""
    journal = journals.read()
    deadline = time.monotonic() + LINK_SECONDS
    while journal is not None and time.monotonic() < deadline:
        seen = Seen()
        links = [seen.link(dev) for dev in journal.devices]
        if all(one is not None and "LOWER_UP" in one["flags"] for one in links):
            return
        time.sleep(1.0)
