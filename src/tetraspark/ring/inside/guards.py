"""Reasons not to touch the node now: runs inside the node."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from tetraspark.ring.inside.marker import FOLDER
from tetraspark.ring.inside.say import NO_PROGRAM, listed, problem, run
from tetraspark.ring.inside.seen import Seen


def guard(devices: list[str], destinations: list[str], label: str) -> list[dict[str, str]]:
    """Return why the node must not be touched: the way back, engines, and what could not be seen.

    `devices` are the planned network devices, `destinations` the addresses that get a route.
    """
    return [*way_back(devices, destinations), *holders(), *lines(label)]


def way_back(devices: list[str], destinations: list[str]) -> list[dict[str, str]]:
    """Refuse when ssh comes in over a planned device, or its answers would go over one."""
    wanted = "ssh over a management network that the ring does not touch"
    fix = "give the node a `host` or `ssh_host` on its management network"
    words = os.environ.get("SSH_CONNECTION", "").split()
    if len(words) != 4:
        seen = "SSH_CONNECTION is not set: the way back cannot be seen"
        return [problem("ssh", seen, wanted, "log in with ssh; sudo must pass SSH_CONNECTION")]
    client, server = words[0].rpartition(":ffff:")[2] or words[0], words[2]
    server = server.rpartition(":ffff:")[2] or server
    seen_now = Seen()
    for dev in devices:
        if any(one.split("/")[0] == server for one in seen_now.addresses(dev)):
            return [problem("ssh", f"ssh came in on {dev} ({server})", wanted, fix)]
    routes = listed(["ip", "-j", "route", "get", client])
    if not routes:
        return [problem("ssh", f"no route back to {client}", wanted, fix)]
    if routes[0].get("dev") in devices:
        return [problem("ssh", f"answers to {client} leave by {routes[0]['dev']}", wanted, fix)]
    if client in destinations:
        return [problem("ssh", f"the plan routes {client}, where ssh comes from", wanted, fix)]
    return []


def holders() -> list[dict[str, str]]:
    """Refuse while a process other than our markers has an RDMA device open."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            names = {os.readlink(handle) for handle in (folder / "fd").iterdir()}  # noqa: PTH115
            argv = (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
            ours = argv[0].startswith(f"{FOLDER}/")
            if not ours and any(one.startswith("/dev/infiniband/") for one in names):
                found.append(f"pid {folder.name} ({(folder / 'comm').read_text().strip()})")
    if not found:
        return []
    wanted = "no process with an RDMA device open: its connections would break or go astray"
    fix = "tetraspark stop; then look at who is left: fuser -v /dev/infiniband/*"
    return [problem("RDMA", f"in use by {', '.join(sorted(found))}", wanted, fix)]


def lines(label: str) -> list[dict[str, str]]:
    """Refuse while a container of a line runs, or when Docker cannot say."""
    ended = run(["docker", "ps", "--filter", f"label={label}", "--format", "{{json .}}"])
    if ended.rc == NO_PROGRAM:
        return []
    wanted, fix = "no line on this node", "tetraspark stop"
    if ended.rc:
        last = (ended.err.strip().splitlines() or [""])[-1][:200]
        fix = "on the node: sudo systemctl start docker; docker ps"
        return [problem("docker", f"docker ps ended with {ended.rc}: {last}", wanted, fix)]
    found: list[dict[str, Any]] = [json.loads(one) for one in ended.out.splitlines() if one]
    names = ", ".join(one.get("Names", "?") for one in found)
    return [problem("docker", f"running: {names}", wanted, fix)] if found else []
