"""What a look at one node tells of a line's containers there."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tetraspark.errors import Problem, RunError
from tetraspark.fleet.clock import Clock, exchange
from tetraspark.fleet.command import NodeRunner
from tetraspark.fleet.container import LINE, RANK, RUN, Container, read_container
from tetraspark.fleet.docker_failure import docker_problem
from tetraspark.fleet.login import Login
from tetraspark.fleet.node_folder import shared_folder
from tetraspark.fleet.program import ask

LOOK_SECONDS = 60.0


@dataclass(frozen=True)
class LogText:
    """New text of a container's log, with Docker's stamps; `cut` when its beginning is left out."""

    text: str
    cut: bool


@dataclass(frozen=True)
class NodeLook:
    """The containers of a line on a node, and what was asked for of them.

    `logs` are by container id, `progress` are texts by file name, `meminfo` is the node's text;
    `clock` is what the exchange tells of the node's clock.
    """

    login: Login
    containers: tuple[Container, ...]
    logs: Mapping[str, LogText]
    progress: Mapping[str, str]
    clock: Clock
    meminfo: str = ""


def look(
    runner: NodeRunner,
    login: Login,
    line: str,
    run: str | None = None,
    logs: Mapping[tuple[str, int], str] | None = None,
) -> NodeLook:
    """Look at the containers of a line, or of one run of it.

    `logs` has, for each (run, rank) whose log is wanted, since when. Raises RunError when the
    node or its Docker does not answer.
    """
    labels = [f"{LINE}={line}", *([f"{RUN}={run}"] if run else [])]
    since = {f"{one}/{rank}": at for (one, rank), at in (logs or {}).items()}
    request = {
        "labels": labels,
        "keys": [RUN, RANK],
        "logs": since,
        "folder": shared_folder(line),
    }
    sent = time.time()
    found = ask(runner, login.node, "containers", request, LOOK_SECONDS)
    clock = exchange(sent, found["begun"], found["ended"], time.time())
    if "failed" in found:
        raise RunError(docker_problem(login, "look for containers", found["failed"]))
    try:
        return _read(login, found, clock)
    except ValueError as error:
        fix = f"ssh {login} docker ps --all --filter label={labels[0]}"
        wanted = "containers that tetraspark made"
        raise RunError(Problem(f"{login.node} docker", str(error), wanted, fix)) from error


def _read(login: Login, found: Mapping[str, Any], clock: Clock) -> NodeLook:
    processes = found["processes"]
    read = [(one["Id"], read_container(one)) for one in found["containers"]]
    containers = tuple(
        replace(one, processes=tuple((pid, letter) for pid, letter in processes.get(id, ())))
        for id, one in read
    )
    ids = {f"{one.run}/{one.rank}": one.id for one in containers}
    logs = {
        ids[key]: LogText(one["text"], one["cut"])
        for key, one in found["logs"].items()
        if key in ids
    }
    return NodeLook(login, containers, logs, found["progress"], clock, found.get("meminfo", ""))
