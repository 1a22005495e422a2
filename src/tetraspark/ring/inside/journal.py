"""The journal: what of the ring on this node is ours, written before it is done: inside the node.

Each change is on the disk as an intention before the program that makes it starts, and as done
after it. Whoever reads the journal after a crash therefore knows all that can be there.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tetraspark.ring.inside import store
from tetraspark.ring.inside.files import FileObject
from tetraspark.ring.inside.kind import Kind
from tetraspark.ring.inside.marker import MarkerObject
from tetraspark.ring.inside.network import AddressObject, LinkObject, NeighbourObject, RouteObject
from tetraspark.ring.inside.rule import RuleObject
from tetraspark.ring.inside.say import Refusal, problem
from tetraspark.ring.inside.steering import OffloadObject, QdiscObject, SteeringObject

PATH = store.STATE / "journal.json"
VERSION = 1
KINDS: dict[str, Any] = {
    "link": LinkObject,
    "steering": SteeringObject,
    "offload": OffloadObject,
    "address": AddressObject,
    "qdisc": QdiscObject,
    "rule": RuleObject,
    "neighbour": NeighbourObject,
    "route": RouteObject,
    "marker": MarkerObject,
    "file": FileObject,
}
"""In the order in which they are put in place: what receives before what sends."""


def read_object(fields: dict[str, Any]) -> Kind:
    """Return the object that a plan or a journal describes. Raises KeyError, TypeError."""
    values = {name: value for name, value in fields.items() if name != "kind"}
    if "marks" in values:
        values["marks"] = tuple(values["marks"])
    found: Kind = KINDS[fields["kind"]](**values)
    return found


@dataclass
class Entry:
    """An object: `adopted` was there, `made` is ours, `set` is a setting that was `before`."""

    fields: dict[str, Any]
    how: str
    before: str | None = None
    done: bool = False

    @property
    def object(self) -> Kind:
        """The object itself."""
        return read_object(self.fields)


@dataclass
class Journal:
    """What is applied: a plan, how far, and until when without a word from the operator.

    `token` names this apply, `snapshot` the one whose snapshot is of before the plan; `boot` is
    the boot it belongs to, `deadline` in seconds since that boot. Phases: prepared, committing,
    applied, confirmed, rolling-back.
    """

    plan: str
    token: str
    snapshot: str
    phase: str
    devices: list[str]
    boot: str
    deadline: float = 0.0
    timer: int | None = None
    entries: list[Entry] = field(default_factory=list)

    def save(self) -> None:
        """Bring it to the disk."""
        store.write(PATH, json.dumps({"version": VERSION, **asdict(self)}, indent=1).encode())

    def entry(self, key: str) -> Entry | None:
        """Return what is known of an object."""
        return next((one for one in self.entries if one.object.key == key), None)

    def intend(self, entry: Entry) -> None:
        """Write down what is about to be done."""
        self.entries = [one for one in self.entries if one.object.key != entry.object.key]
        self.entries.append(entry)
        self.save()

    def did(self, entry: Entry) -> None:
        """Write down that it is done."""
        entry.done = True
        self.save()

    def forget(self, entry: Entry) -> None:
        """Write down that it is undone."""
        self.entries.remove(entry)
        self.save()

    def owns(self, key: str) -> bool:
        """Say whether an object is ours: made by us, or about to be when we were cut off."""
        found = self.entry(key)
        return found is not None and found.how != "adopted"

    def awaits(self, token: str) -> bool:
        """Say whether this is the commit of that apply, and nobody has confirmed it."""
        return self.token == token and self.phase in ("committing", "applied", "rolling-back")

    @property
    def seconds_left(self) -> float:
        """Until the node goes back by itself; meaningful while it is not confirmed."""
        return self.deadline - since_boot()


def since_boot() -> float:
    """Return seconds since boot, sleep included: no clock that somebody sets."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot_id() -> str:
    """Return what names this boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def read() -> Journal | None:
    """Return the journal, or None when there is none. Raises Refusal for one it cannot read."""
    try:
        values = json.loads(PATH.read_text())
        if values.pop("version") != VERSION:
            raise ValueError(f"not of version {VERSION}")
        values["entries"] = [Entry(**one) for one in values["entries"]]
        found = Journal(**values)
        for one in found.entries:
            read_object(one.fields)
        return found
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        wanted = "a journal that this version wrote: it alone knows what is ours"
        fix = f"look at {PATH}, undo it by hand, then remove it"
        raise Refusal(
            problem(str(PATH), f"{type(error).__name__}: {error}", wanted, fix)
        ) from error


def drop() -> None:
    """Forget all: nothing of ours is left."""
    store.remove(PATH)
