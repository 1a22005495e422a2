"""The runner of a fleet: each rank a container of its node's Docker, reached over ssh.

Containers are found by their labels, never by remembered ids: whoever started them and however
that ended. Docker keeps the logs; they are copied into the run's folder at every look.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol, TypeVar

from tetraspark.engine.progress import progress_path
from tetraspark.errors import Problem, RunError
from tetraspark.fleet.command import NodeCommand, NodeRunner
from tetraspark.fleet.container import LINE, RANK, RUN, SITE, Container
from tetraspark.fleet.container_stop import stop_containers
from tetraspark.fleet.docker_failure import docker_problem
from tetraspark.fleet.log_mirror import LogMirror
from tetraspark.fleet.login import Login
from tetraspark.fleet.node_folder import prepare
from tetraspark.fleet.node_look import NodeLook, look
from tetraspark.fleet.rank import RankCommand, RankState
from tetraspark.fleet.run_files import known_exit, meminfo_path, record_exit, replace
from tetraspark.fleet.runner import Part, Present, Stopped

START_SECONDS = 120.0
T = TypeVar("T")


class LineNodes(NodeRunner, Protocol):
    """Runs commands on nodes, and leads to ports there."""

    def forward(self, node: str, host: str, port: int) -> Path:
        """Return a socket file of this machine that leads to a TCP port, as the node sees it."""
        ...


class Containers:
    """Runs ranks as containers on the nodes of `logins`; `site` says whose they are."""

    unit = "containers"
    poll_seconds = 1.0

    def __init__(self, nodes: LineNodes, logins: Sequence[Login], site: str = "") -> None:
        self._nodes = nodes
        self._logins = {login.node: login for login in logins}
        self._site = site

    def start(self, commands: Sequence[RankCommand], run_dir: Path, key: str | None) -> None:
        """Start the container of each rank, all at once; the head gets the key, in a file."""
        asked = {command.node: command for command in commands}

        def one(login: Login) -> None:
            command = asked[login.node]
            self._start(login, command, run_dir, None if command.rank else key)

        failed = self._each(one, asked)
        problems = [one for error in failed.values() if error for one in error.problems]
        if problems:
            raise RunError(*problems)

    def _start(self, login: Login, command: RankCommand, run_dir: Path, key: str | None) -> None:
        line, run = run_dir.parent.name, run_dir.name
        prepare(self._nodes, login, line, run, key)
        labels = {LINE: line, RUN: run, RANK: str(command.rank), SITE: self._site}
        words = [word for name in labels for word in ("--label", f"{name}={labels[name]}")]
        argv = (*command.argv[:2], *words, *command.argv[2:])
        done = self._nodes.run(login.node, NodeCommand(argv, timeout=START_SECONDS))
        if done.rc:
            raise RunError(docker_problem(login, f"start of rank {command.rank}", done.stderr))

    def inspect(self, run_dir: Path, nodes: Sequence[str]) -> tuple[RankState, ...]:
        """Return the state of every rank; brings the copies of the logs up to date."""
        line, run = run_dir.parent.name, run_dir.name
        logs = {(run, rank): LogMirror(run_dir, rank).since for rank in range(len(nodes))}
        looks = self._each(lambda login: look(self._nodes, login, line, run, logs))
        states = {
            one.rank: _kept(found, one, run_dir)
            for found in looks.values()
            if isinstance(found, NodeLook)
            for one in found.containers
        }
        return tuple(
            states.get(rank) or _without(rank, looks.get(node), run_dir)
            for rank, node in enumerate(nodes)
        )

    def shared_memory(self, run_dir: Path) -> set[Path]:
        """Return none: a container's shared memory is its own, and ends with it."""
        return set()

    def present(self, root: Path) -> Present:
        """Return the containers of the line, in any state."""
        looks = self._each(lambda login: look(self._nodes, login, root.name))
        parts = [
            Part(one.run, one.rank, f"{one.name} on {found.login.node}", one.running)
            for found in looks.values()
            if isinstance(found, NodeLook)
            for one in found.containers
        ]
        return Present(tuple(sorted(parts, key=lambda part: part.rank)), _problems(looks))

    def stop(
        self, root: Path, grace: float, leftovers: Iterable[Path] = (), run: str | None = None
    ) -> Stopped:
        """Stop and remove the containers on all nodes at once, and look that none is left."""
        done = self._each(lambda login: stop_containers(self._nodes, login, root, run, grace))
        stopped = [one for one in done.values() if isinstance(one, Stopped)]
        return Stopped(
            asked=tuple(name for one in stopped for name in one.asked),
            killed=tuple(name for one in stopped for name in one.killed),
            removed=tuple(name for one in stopped for name in one.removed),
            unverified=tuple(map(_unverified, _problems(done))),
        )

    def way_to(self, node: str, host: str, port: int) -> Path:
        """Return a socket that leads through ssh to a port of the node's."""
        return self._nodes.forward(node, host, port)

    def _each(
        self, action: Callable[[Login], T], nodes: Iterable[str] | None = None
    ) -> dict[str, T | RunError]:
        """Do something for each node, all at once; a node that fails gives its error."""

        def one(login: Login) -> T | RunError:
            try:
                return action(login)
            except RunError as error:
                return error

        chosen = [self._logins[node] for node in (self._logins if nodes is None else nodes)]
        with ThreadPoolExecutor(max(len(chosen), 1)) as pool:
            names = [login.node for login in chosen]
            return dict(zip(names, pool.map(one, chosen), strict=True))


def _kept(found: NodeLook, container: Container, run_dir: Path) -> RankState:
    """Return the state of a container, and keep what it said in the run's folder."""
    rank = container.rank
    mirror = LogMirror(run_dir, rank)
    if (log := found.logs.get(container.id)) is not None:
        mirror.add(log.text, log.cut, found.clock)
    path = progress_path(run_dir, rank)
    if (text := found.progress.get(path.name)) is not None:
        replace(path, text)
    if found.meminfo:
        replace(meminfo_path(run_dir, rank), found.meminfo)
    state = container.state(mirror.clock(found.clock).ahead)
    known, problem = known_exit(run_dir, rank)
    if state.exit is not None and known is None and problem is None:
        record_exit(run_dir, rank, state.exit)
    return state if problem is None else dataclasses.replace(state, problem=problem)


def _without(rank: int, found: NodeLook | RunError | None, run_dir: Path) -> RankState:
    """Return the state of a rank that no container was found of."""
    if isinstance(found, RunError):
        return RankState(rank, "unreachable", problem=found.problems[0])
    end, problem = known_exit(run_dir, rank)
    return RankState(rank, "exited" if end or problem else "absent", exit=end, problem=problem)


def _unverified(problem: Problem) -> Problem:
    """Say that a node may still have something, and what to do when it answers again."""
    seen = f"not known whether something of the line is left there: {problem.seen}"
    fix = f"{problem.fix}; when it answers again: tetraspark stop"
    return Problem(problem.where, seen, "a node without a container of the line", fix)


def _problems(found: Mapping[str, object]) -> tuple[Problem, ...]:
    errors = (one for one in found.values() if isinstance(one, RunError))
    return tuple(problem for error in errors for problem in error.problems)
