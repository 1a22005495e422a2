"""What the planned devices looked like before: kept with the journal, compared after a rollback."""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

from tetraspark.ring.inside import store
from tetraspark.ring.inside.devlink import parameters
from tetraspark.ring.inside.files import NETPLAN, PROFILES
from tetraspark.ring.inside.say import Refusal, listed, run

FOLDER = store.STATE / "snapshots"
KEEP = 10
LIFETIMES = ("valid_life_time", "preferred_life_time", "dynamic")
COUNTS = (
    "stats",
    "used",
    "installed",
    "last_used",
    "used_hw",
    "in_hw_count",
    "bind",
    "ref",
    "index",
)


def state(devices: list[str]) -> dict[str, Any]:
    """Return addresses, routes, neighbours, rules, filters and files as they can be compared.

    What changes by itself is left out: lifetimes, counters, neighbours that the kernel found.
    """
    links = [one for one in listed(["ip", "-j", "addr"]) if one["ifname"] in devices]
    routes = listed(["ip", "-4", "-j", "route", "show", "table", "all"])
    found: dict[str, Any] = {
        "link": {one["ifname"]: (one["address"], one["mtu"]) for one in links},
        "address": {one["ifname"]: _without(one["addr_info"], LIFETIMES) for one in links},
        "route": [one for one in routes if one.get("dev") in devices],
        "rule": listed(["ip", "-j", "rule"]),
        "neighbour": [
            one
            for one in listed(["ip", "-j", "neigh"])
            if one["dev"] in devices and "PERMANENT" in one.get("state", [])
        ],
        "qdisc": [
            one
            for one in listed(["tc", "-j", "qdisc", "show"])
            if one.get("dev") in devices and one["kind"] in ("clsact", "ingress")
        ],
        "filter": {dev: _filters(dev) for dev in devices},
        "offload": {dev: _offload(dev) for dev in devices},
        "parameter": _parameters(),
        "file": {str(path): store.sha256(path) for path in _paths()},
    }
    normal: dict[str, Any] = json.loads(json.dumps(found, sort_keys=True))
    return {name: _sorted(value) for name, value in normal.items()}


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return in words what is not as it was."""
    found = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            keys = [key for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key)]
            found += [
                f"{name} {key}: was {_short(old.get(key))}, is {_short(new.get(key))}"
                for key in keys
            ]
        else:
            gone = [one for one in old or [] if one not in (new or [])]
            came = [one for one in new or [] if one not in (old or [])]
            found += [f"{name}: gone: {_short(one)}" for one in gone]
            found += [f"{name}: new: {_short(one)}" for one in came]
    return found


def take(token: str, devices: list[str]) -> None:
    """Keep the state, and the files themselves, under an apply's token."""
    folder = FOLDER / token
    store.write(folder / "state.json", json.dumps(state(devices), indent=1).encode())
    part = folder / "files.tar.part"
    with tarfile.open(part, "w") as tar:
        for path in _paths():
            tar.add(path, recursive=False)
    store.write(folder / "files.tar", part.read_bytes(), 0o600)
    store.remove(part)
    for old in sorted(FOLDER.iterdir(), key=lambda one: one.stat().st_mtime)[:-KEEP]:
        shutil.rmtree(old)


def kept(token: str) -> dict[str, Any] | None:
    """Return the state kept under a token, or None."""
    try:
        found: dict[str, Any] = json.loads((FOLDER / token / "state.json").read_text())
    except (OSError, ValueError):
        return None
    return found


def _paths() -> list[Path]:
    folders = [path for path in (NETPLAN, PROFILES) if path.is_dir()]
    return sorted(one for folder in folders for one in folder.rglob("*") if one.is_file())


def _filters(dev: str) -> Any:
    ended = run(["tc", "-j", "filter", "show", "dev", dev, "ingress"])
    if ended.rc or not ended.out.strip():
        return []
    return _without([one for one in json.loads(ended.out) if one.get("options")], COUNTS)


def _parameters() -> Any:
    try:
        return parameters()
    except Refusal:
        return "not seen"


def _offload(dev: str) -> str:
    for line in run(["ethtool", "-k", dev]).out.splitlines():
        if line.strip().startswith("hw-tc-offload:"):
            return line.partition(":")[2].strip()
    return "not seen"


def _without(value: Any, names: tuple[str, ...]) -> Any:
    if isinstance(value, list):
        return [_without(one, names) for one in value]
    if isinstance(value, dict):
        return {key: _without(one, names) for key, one in value.items() if key not in names}
    return value


def _sorted(value: Any) -> Any:
    return (
        sorted(value, key=lambda one: json.dumps(one, sort_keys=True))
        if isinstance(value, list)
        else value
    )


def _short(value: Any) -> str:
    text = json.dumps(value, sort_keys=True)
    return (
        text
        if len(text) < 160
        else f"{text[:120]}… ({hashlib.sha256(text.encode()).hexdigest()[:8]})"
    )
