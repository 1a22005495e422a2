#!/usr/bin/python3 -IS
"""Stands in front of runc in a node: limits that the machine can give, and faults that tests want.

Where the machine lacks CAP_SYS_RESOURCE, nobody can raise a hard limit or hold every capability,
and runc fails on `--ulimit memlock=-1` or `--privileged`. This trims a container's settings to
what the machine can give; `docker inspect` still shows what was asked.
"""

import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

CAP_SYS_RESOURCE = 24
# Variables that a test gives to every container of this one node, to make a step fail there.
FAULT = Path("/etc/tetraspark/fault")
# Folders of the node that every container sees, read-only.
MOUNTS = Path("/etc/tetraspark/mounts")


def limits(process: dict[str, Any]) -> None:
    for limit in process.get("rlimits") or []:
        number = getattr(resource, limit["type"], None)
        hard = resource.RLIM_INFINITY if number is None else resource.getrlimit(number)[1]
        if hard != resource.RLIM_INFINITY:
            limit["hard"] = min(limit["hard"], hard)
            limit["soft"] = min(limit["soft"], hard)


def trim(process: dict[str, Any]) -> None:
    limits(process)
    for kind, names in (process.get("capabilities") or {}).items():
        process["capabilities"][kind] = [name for name in names if name != "CAP_SYS_RESOURCE"]
    if process.get("oomScoreAdj") is not None:
        lowest = int(Path("/proc/self/oom_score_adj").read_text())
        process["oomScoreAdj"] = max(process["oomScoreAdj"], lowest)


def lacks_capability() -> bool:
    lines = Path("/proc/self/status").read_text().splitlines()
    bound = next(line for line in lines if line.startswith("CapBnd")).split()[1]
    return not int(bound, 16) >> CAP_SYS_RESOURCE & 1


def value(args: list[str], *names: str) -> str | None:
    return next((args[i + 1] for i, word in enumerate(args[:-1]) if word in names), None)


def mount(folder: str) -> dict[str, Any]:
    options = ["rbind", "ro"]
    return {"destination": folder, "source": folder, "type": "bind", "options": options}


def main(args: list[str]) -> None:
    path = None
    if "create" in args or "run" in args:
        path = Path(value(args, "--bundle", "-b") or ".", "config.json")
    elif "exec" in args:
        process = value(args, "--process", "-p")
        path = Path(process) if process else None
    if path is not None:
        spec = json.loads(path.read_text())
        process = spec if "exec" in args else spec["process"]
        if lacks_capability():
            trim(process)
        if FAULT.exists():
            process["env"] = [*process.get("env", []), *FAULT.read_text().splitlines()]
        if MOUNTS.exists() and "mounts" in spec:
            spec["mounts"] += [mount(folder) for folder in MOUNTS.read_text().splitlines()]
        path.write_text(json.dumps(spec))
    runc = next(one for one in ("/usr/sbin/runc", "/usr/bin/runc") if os.access(one, os.X_OK))
    os.execv(runc, [runc, *args])


if __name__ == "__main__":
    main(sys.argv[1:])
