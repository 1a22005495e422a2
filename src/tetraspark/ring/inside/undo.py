"""Rollback: take away exactly what the journal owns, last first, and compare with the snapshot.

Runs inside the node. It can be cut off at any point and run again.
"""

from __future__ import annotations

import json
import time
from typing import Any

from tetraspark.ring.inside import files, snapshot, store
from tetraspark.ring.inside import journal as journals
from tetraspark.ring.inside.journal import Entry, Journal
from tetraspark.ring.inside.say import Refusal
from tetraspark.ring.inside.seen import Seen
from tetraspark.ring.inside.store import locked

LAST = store.STATE / "last.json"


def rollback(by: str, token: str | None = None) -> dict[str, Any]:
    """Undo what is applied here, if it is still the apply of that token; None means any.

    Returns what was removed or put back, what was left because it is no longer ours, what failed,
    and how the node differs from its snapshot.
    """
    with locked():
        journal = journals.read()
        if journal is None or (token is not None and journal.token != token):
            return _outcome("nothing", by)
        return _undo(journal, by)


def expire(token: str) -> None:
    """Undo an apply that nobody confirmed in time; a confirmed one stays."""
    with locked():
        journal = journals.read()
        if journal is not None and journal.awaits(token) and journal.seconds_left <= 0:
            _undo(journal, "timer")


def _undo(journal: Journal, by: str) -> dict[str, Any]:
    journal.phase = "rolling-back"
    journal.save()
    found = _outcome("rolled back", by) | {"plan": journal.plan, "token": journal.token}
    own = {one.fields["path"] for one in journal.entries if one.fields["kind"] == "file"}
    for entry in reversed(list(journal.entries)):
        try:
            said, word = _undo_one(entry)
        except Refusal as refusal:
            found["failed"] += refusal.problems
            continue
        journal.forget(entry)
        if said:
            found[said].append(f"{entry.object.key}{word}")
    if found["failed"]:
        found["outcome"] = "failed"
        return found
    before = snapshot.kept(journal.snapshot)
    if before is None:
        found["differences"] = ["the snapshot cannot be read"]
    else:
        found["differences"] = snapshot.differences(before, snapshot.state(journal.devices))
    found["leftovers"] = files.speaking_of(journal.devices, own)
    store.write(LAST, json.dumps(found, indent=1).encode())
    journals.drop()
    return found


def _undo_one(entry: Entry) -> tuple[str, str]:
    """Undo an entry; returns the list it belongs to ("" for none) and a word about it."""
    if entry.how == "adopted":
        return "", ""
    thing = entry.object
    look = thing.look(Seen())
    if look.state in ("missing", "no-link"):
        return "", ""
    if entry.how == "set" and look.state == "different" and look.before == entry.before:
        return "", ""
    if look.state == "different" and not look.marked:
        return "left", f": {look.detail}"
    thing.unmake(entry.before)
    return "undone", "" if entry.before is None else f": {entry.before} again"


def _outcome(word: str, by: str) -> dict[str, Any]:
    return {
        "outcome": word,
        "by": by,
        "time": time.time(),
        "undone": [],
        "left": [],
        "failed": [],
        "differences": [],
        "leftovers": [],
    }
