"""Stopping the containers of a line on one node: asked, killed, their last words kept, removed."""

from dataclasses import replace
from pathlib import Path

from tetraspark.errors import Problem, RunError
from tetraspark.fleet.command import NodeCommand, NodeRunner, Result
from tetraspark.fleet.container import LINE, RUN, Container
from tetraspark.fleet.docker_failure import docker_problem
from tetraspark.fleet.log_mirror import LogMirror
from tetraspark.fleet.login import Login
from tetraspark.fleet.node_folder import remove
from tetraspark.fleet.node_look import look
from tetraspark.fleet.run_files import record_exit
from tetraspark.fleet.runner import Stopped

DOCKER_SECONDS = 60.0
"""What Docker may take beyond the time it is told to wait."""
KILLED = 128 + 9


def stop_containers(
    runner: NodeRunner, login: Login, root: Path, run: str | None, grace: float
) -> Stopped:
    """Stop and remove the containers of a line on a node, or of one run of it.

    Their last lines are added to the copies in the runs' folders below `root`. Raises RunError
    when the node or its Docker does not answer, or something is left.
    """
    line = root.name
    found = look(runner, login, line, run).containers
    running = [one for one in found if one.running]
    _stop(runner, login, running, grace)
    killed = _keep_last_words(runner, login, root, run, found)
    if found:
        _docker(runner, login, "removal", ("rm", "--force", *(one.id for one in found)))
        _require_none(runner, login, line, run)
    remove(runner, login, line, run)
    was_running = {one.id for one in running}
    return Stopped(
        asked=tuple(_name(login, one) for one in running),
        killed=tuple(_name(login, one) for one in killed if one.id in was_running),
        removed=tuple(_name(login, one) for one in found),
    )


def _stop(runner: NodeRunner, login: Login, running: list[Container], grace: float) -> None:
    paused = [one.id for one in running if one.status == "paused"]
    if paused:
        _docker(runner, login, "waking paused containers", ("unpause", *paused))
    if running:
        words = ("stop", "--time", f"{grace:.0f}", *(one.id for one in running))
        _docker(runner, login, "stop", words, grace)


def _keep_last_words(
    runner: NodeRunner, login: Login, root: Path, run: str | None, found: tuple[Container, ...]
) -> list[Container]:
    """Copy the rest of the logs; return the containers that had to be killed.

    A run of another launcher gets a folder here too: with the container goes the only log.
    """
    mirrors = {(one.run, one.rank): LogMirror(root / one.run, one.rank) for one in found}
    if not mirrors:
        return []
    logs = {key: mirror.since for key, mirror in mirrors.items()}
    seen = look(runner, login, root.name, run, logs)
    try:
        for one in seen.containers:
            (root / one.run).mkdir(mode=0o700, parents=True, exist_ok=True)
            mirror = mirrors[one.run, one.rank]
            mirror.add(seen.logs[one.id].text, seen.logs[one.id].cut, seen.clock)
            ended = replace(one, restarts=0).state(mirror.clock(seen.clock).ahead).exit
            if ended is not None:
                record_exit(root / one.run, one.rank, ended)
    except OSError as error:
        raise _not_kept(login, root, error) from error
    return [one for one in seen.containers if one.exit_code == KILLED]


def _require_none(runner: NodeRunner, login: Login, line: str, run: str | None) -> None:
    """Raise RunError when Docker still has a container of the line, or of the run."""
    labels = [f"{LINE}={line}", *([f"{RUN}={run}"] if run else [])]
    words = [word for label in labels for word in ("--filter", f"label={label}")]
    listed = ("ps", "--all", *words, "--format={{.Names}} ({{.State}})")
    left = _docker(runner, login, "look for what is left", listed).stdout.split("\n")
    if any(left):
        names = ", ".join(filter(None, left))
        fix = f"ssh {login} docker ps --all; ssh {login} journalctl -u docker"
        seen = f"still there after removal: {names}"
        raise RunError(Problem(f"{login.node} docker", seen, "no container of the line", fix))


def _docker(
    runner: NodeRunner, login: Login, what: str, words: tuple[str, ...], seconds: float = 0.0
) -> Result:
    command = NodeCommand(("docker", *words), timeout=seconds + DOCKER_SECONDS)
    done = runner.run(login.node, command)
    if done.rc:
        raise RunError(docker_problem(login, what, done.stderr))
    return done


def _name(login: Login, container: Container) -> str:
    return f"{container.name} on {login.node}"


def _not_kept(login: Login, root: Path, error: OSError) -> RunError:
    seen = f"stopped, and kept: its last lines cannot be written: {error.strerror or error}"
    fix = f"df -h {root}; make room, then tetraspark stop again"
    return RunError(Problem(f"{login.node} container", seen, "room for its log", fix))
