"""Hairpin queues: a driver setting that only a re-initialisation brings into effect.

That drops all RDMA of the function for seconds, so it is a step of its own. Runs in the node.
"""

from __future__ import annotations

import json
import time
from typing import Any

from tetraspark.ring.inside import journal as journals
from tetraspark.ring.inside import store
from tetraspark.ring.inside.guards import guard
from tetraspark.ring.inside.say import Refusal, must, problem
from tetraspark.ring.inside.seen import Seen
from tetraspark.ring.inside.store import locked

PATH = store.STATE / "hairpin.json"
NAMES = {"queues": "hairpin_num_queues", "size": "hairpin_queue_size"}
RELOAD_SECONDS = 90.0
LINK_SECONDS = 60.0


def look(wanted: dict[str, Any], seen: Seen) -> dict[str, Any]:
    """Return the state of one function's queues: in effect, pending, different or failed.

    In effect is a wanted value that the driver was re-initialised after; a value alone may have
    been set a moment ago. What we set ourselves must be older than a reload we counted.
    """
    pci = wanted["pci"]
    values = _values(pci, seen)
    count, failed = seen.reloads(pci)
    since = _record().get(pci, {}).get("reloads", 0)
    text = f"{values['queues']} queues of {values['size']}, {count} re-initialisations"
    if failed:
        state = "failed"
    elif values != {"queues": wanted["queues"], "size": wanted["size"]}:
        state = "different"
    else:
        state = "in effect" if count > since else "pending"
    return {"netdev": wanted["netdev"], "pci": pci, "state": state, "detail": text} | values


def change(wanted: list[dict[str, Any]], devices: list[str], label: str) -> list[dict[str, Any]]:
    """Set and re-initialise every function that is not in effect, one after the other.

    Raises Refusal under RDMA or an applied ring, and at the first function that does not come
    back.
    """
    with locked():
        seen = Seen()
        late = [one for one in wanted if look(one, seen)["state"] != "in effect"]
        if late:
            _refuse(devices, label)
        for one in late:
            _set(one, keep=True)
        seen = Seen()
        return [look(one, seen) for one in wanted]


def restore(devices: list[str], label: str) -> list[dict[str, Any]]:
    """Put back the values that were there before `change`, and re-initialise."""
    with locked():
        record = _record()
        if record:
            _refuse(devices, label)
        for pci, kept in record.items():
            _set({"pci": pci, "netdev": kept["netdev"], **kept["before"]}, keep=False)
        store.remove(PATH)
        return [
            {"pci": pci, "netdev": one["netdev"], **one["before"]} for pci, one in record.items()
        ]


def _set(wanted: dict[str, Any], keep: bool) -> None:
    pci, seen = wanted["pci"], Seen()
    now = _values(pci, seen)
    if keep:
        record = _record()
        known = record.get(pci, {}).get("before", now)
        count, _ = seen.reloads(pci)
        record[pci] = {"netdev": wanted["netdev"], "before": known, "reloads": count}
        store.write(PATH, json.dumps(record | {"boot": journals.boot_id()}).encode())
    for name, param in NAMES.items():
        if wanted[name] is not None and now[name] != wanted[name]:
            words = ["name", param, "value", str(wanted[name]), "cmode", "driverinit"]
            must(["devlink", "dev", "param", "set", f"pci/{pci}", *words])
    must(["devlink", "dev", "reload", f"pci/{pci}", "action", "driver_reinit"], RELOAD_SECONDS)
    _wait_for_link(wanted["netdev"])


def _values(pci: str, seen: Seen) -> dict[str, Any]:
    return {name: seen.parameter(pci, param, "driverinit") for name, param in NAMES.items()}


def _record() -> dict[str, Any]:
    """Return what we changed in this boot, by function: a boot resets driverinit values."""
    try:
        found: dict[str, Any] = json.loads(PATH.read_text())
    except (OSError, ValueError):
        return {}
    return found if found.pop("boot", None) == journals.boot_id() else {}


def _refuse(devices: list[str], label: str) -> None:
    bad = guard(devices, [], label)
    journal = journals.read()
    if journal is not None and journal.phase != "prepared":
        seen = f"plan {journal.plan[:12]} is {journal.phase}: its rules would be lost"
        wanted = "no ring on this node while its cards are re-initialised"
        bad.append(problem("ring", seen, wanted, "tetraspark ring rollback"))
    if bad:
        raise Refusal(*bad)


def _wait_for_link(dev: str) -> None:
    deadline = time.monotonic() + LINK_SECONDS
    while True:
        found = Seen().link(dev)
        if found is not None and {"UP", "LOWER_UP"} <= set(found["flags"]):
            return
        if time.monotonic() > deadline:
            seen = f"no link {LINK_SECONDS:g} s after its driver was re-initialised"
            raise Refusal(problem(dev, seen, "the link back", f"ip link show {dev}; dmesg | tail"))
        time.sleep(0.2)
