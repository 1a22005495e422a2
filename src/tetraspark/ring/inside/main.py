"""What the node program is asked for, and its answer: one JSON object. Runs inside the node."""

from __future__ import annotations

import json
import sys
from typing import Any

from tetraspark.ring.inside import account, commit, confirm, files, hairpin, timer, undo
from tetraspark.ring.inside import journal as journals
from tetraspark.ring.inside.guards import holders, lines
from tetraspark.ring.inside.rule import RuleObject
from tetraspark.ring.inside.say import Refusal
from tetraspark.ring.inside.seen import Seen


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """Do what is asked. A refusal is an answer with its problems."""
    try:
        done: dict[str, Any] = VERBS[asked["verb"]](asked)
    except Refusal as refusal:
        return {"ok": False, "problems": refusal.problems}
    return {"ok": True, "problems": [], **done}


def main(text: str) -> None:
    """Read the request, print the answer."""
    json.dump(answer(json.loads(text)), sys.stdout)
    sys.stdout.flush()


def look(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the state of every planned object, the journal, and the node's surroundings."""
    request, seen = commit.Request.of(asked), Seen()
    journal = journals.read()
    planned = [journals.read_object(one) for one in asked["files"]]
    own = (
        {one.fields["path"] for one in journal.entries if "path" in one.fields}
        if journal
        else set()
    )
    speaking = files.speaking_of(list(request.devices), own)
    names = {one["path"] for one in asked["files"]}
    return {
        "objects": [one.as_dict() for one in commit.judged(request, journal, seen)],
        "files": [one.as_dict() for one in confirm.judged(planned, journal, seen)],
        "hairpin": [hairpin.look(one, seen) for one in asked["hairpin"]],
        "journal": _summary(journal),
        "last": _last(),
        "leftovers": speaking,
        "later": files.later(speaking, names),
        "surroundings": account.surroundings(),
        "identity": account.identity(list(request.devices), list(asked["addresses"]), seen),
        "gids": account.gids(asked["addresses"]),
    }


def count(asked: dict[str, Any]) -> dict[str, Any]:
    """Return counters, as `account.counters` does."""
    request = commit.Request.of(asked)
    rules = [one for one in request.objects if isinstance(one, RuleObject)]
    return account.counters(rules, list(asked["addresses"]))


def roll_back(asked: dict[str, Any]) -> dict[str, Any]:
    """Undo; with `guarded`, not while somebody uses RDMA."""
    bad = [*holders(), *lines(asked["label"])] if asked["guarded"] and journals.read() else []
    if bad:
        raise Refusal(*bad)
    return undo.rollback(asked["by"], asked.get("token"))


def change_hairpin(asked: dict[str, Any]) -> dict[str, Any]:
    """Set the queues, or put back what they were."""
    if asked["undo"]:
        return {"hairpin": hairpin.restore(asked["devices"], asked["label"])}
    return {"hairpin": hairpin.change(asked["hairpin"], asked["devices"], asked["label"])}


def _summary(journal: journals.Journal | None) -> dict[str, Any] | None:
    if journal is None:
        return None
    return {
        "plan": journal.plan,
        "token": journal.token,
        "phase": journal.phase,
        "seconds_left": None if journal.phase == "confirmed" else journal.seconds_left,
        "timer": timer.alive(journal.timer),
        "this_boot": journal.boot == journals.boot_id(),
        "owned": [one.object.key for one in journal.entries if one.how != "adopted"],
        "adopted": [one.object.key for one in journal.entries if one.how == "adopted"],
    }


def _last() -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(undo.LAST.read_text())
    except (OSError, ValueError):
        return None
    return found


VERBS: dict[str, Any] = {
    "look": look,
    "prepare": lambda asked: commit.prepare(commit.Request.of(asked)),
    "commit": lambda asked: commit.commit(commit.Request.of(asked), asked["seconds"]),
    "abandon": lambda asked: commit.abandon(asked["token"]),
    "confirm": lambda asked: confirm.confirm(asked),
    "rollback": roll_back,
    "count": count,
    "hairpin": change_hairpin,
    "restore": lambda asked: confirm.restore(),
}
