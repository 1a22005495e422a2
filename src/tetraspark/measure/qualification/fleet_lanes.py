"""The RDMA lanes of a fleet, qualified from one place: `qualify lanes` on every node at once."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.fleet.command import NodeCommand, NodeRunner, Result
from tetraspark.site.load import LoadedSite

CONTAINER = (
    "--network=host",
    "--device=/dev/infiniband",
    "--cap-add=IPC_LOCK",
    "--ulimit=memlock=-1",
)
"""What the lanes of a container need, and no more: no GPU, no model."""
MEET_PORT = 20099
"""Not the port at which the engine's ranks meet: one of them may still be closing."""
LIMIT_SECONDS = 120
OPERATION_SECONDS = 600
"""For the start of a container, the proof, and the timing, beyond the wait for all nodes."""


def lane_commands(loaded: LoadedSite, rounds: int) -> dict[str, NodeCommand]:
    """Return the command of every node: a container of the line's image, gone when it ends.

    Raises UsageError for a site without RDMA lanes between all nodes. Pure.
    """
    site = loaded.site
    if site.kind == "local" or site.fabric is None or site.image is None:
        seen, wanted = f'kind = "{site.kind}"', "a fleet with [fabric] and [image]"
        raise UsageError(Problem(loaded.origin("kind").where, seen, wanted, "another --site"))
    if site.fabric.topology == "ring":
        seen = "a ring: device l of a node does not reach device l of every other"
        where = loaded.origin("fabric.topology").where
        wanted, fix = "a switch, or two nodes", "look at the cables: tetraspark doctor"
        raise UsageError(Problem(where, seen, wanted, fix))
    head = site.nodes[0]
    found = {}
    for rank, node in enumerate(site.nodes):
        devices = ",".join(node.devices or site.fabric.devices)
        words = {
            "--rank": rank,
            "--world": len(site.nodes),
            "--meet": f"{head.host}:{MEET_PORT}",
            "--node": node.name,
            "--devices": devices,
            "--min-mtu": site.fabric.min_rdma_mtu,
            "--rounds": rounds,
            "--limit": LIMIT_SECONDS,
        }
        argv = (
            *("docker", "run", "--rm", f"--name=tetraspark-{site.name}-lanes", *CONTAINER),
            *(site.image.tag, "python3", "-m", "tetraspark", "qualify", "lanes"),
            *(str(word) for pair in words.items() for word in pair),
            "--json",
        )
        found[node.name] = NodeCommand(argv, timeout=LIMIT_SECONDS + OPERATION_SECONDS)
    return found


def qualify_fleet(runner: NodeRunner, commands: Mapping[str, NodeCommand]) -> dict[str, Any]:
    """Run the commands, all at once; return the report, which is the same on every node.

    Raises RunError with what each node told, each once.
    """
    with ThreadPoolExecutor(len(commands)) as pool:
        try:
            results = dict(
                zip(commands, pool.map(lambda one: runner.run(*one), commands.items()), strict=True)
            )
        except BaseException:
            runner.interrupt()
            raise
    problems = [
        problem for node, one in results.items() if one.rc for problem in _problems(node, one)
    ]
    if problems:
        raise RunError(*dict.fromkeys(problems))
    return _report(*next(iter(results.items())))


def _report(node: str, result: Result) -> dict[str, Any]:
    try:
        found = json.loads(result.stdout)
    except ValueError as error:
        raise RunError(_unreadable(node, result)) from error
    if not isinstance(found, dict):
        raise RunError(_unreadable(node, result))
    return found


def _problems(node: str, result: Result) -> list[Problem]:
    """Return what a node refused, or how its command ended where it says nothing."""
    try:
        return [Problem(**one) for one in json.loads(result.stdout)["problems"]]
    except (ValueError, KeyError, TypeError):
        return [_unreadable(node, result)]


def _unreadable(node: str, result: Result) -> Problem:
    last = (result.stderr.strip().splitlines() or ["nothing on stderr"])[-1][:300]
    seen = f"exit code {result.rc}, no report: {last}"
    fix = "tetraspark doctor; or the command by hand: tetraspark qualify fabric --dry-run"
    return Problem(node, seen, "the report of `qualify lanes`", fix)
