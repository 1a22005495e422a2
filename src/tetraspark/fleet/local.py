"""The local runner: ranks are process groups on this machine."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from tetraspark.engine.label import RANK, RUN_DIR
from tetraspark.engine.standins import MODULES
from tetraspark.errors import Problem, RunError
from tetraspark.fleet import shared_memory
from tetraspark.fleet.port import free_ports
from tetraspark.fleet.process import Process, labelled
from tetraspark.fleet.rank import RankCommand, RankState
from tetraspark.fleet.run_files import exit_path, known_exit, log_path
from tetraspark.fleet.runner import Inventory, Part, Present, Stopped

# A rank sees these of the caller's variables and no others: a setting of the engine that happens
# to be exported in somebody's shell must not reach one machine's ranks only.
INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_CACHE_HOME")

KILL_SECONDS = 30.0

# Runs the engine and records how it ended, as a container runtime would. The trap keeps the
# supervisor alive when the group is signalled; the engine gets the default action.
SUPERVISOR = """
trap : TERM INT HUP
record=$1; shift
"$@"
code=$?
echo "$code $(date +%s.%N)" > "$record.part" && mv "$record.part" "$record"
exit $code
"""


class LocalRunner:
    """Runs ranks as sessions of their own on this machine."""

    unit = "processes"
    poll_seconds = 0.2

    def inventory(self, ranks: int) -> Inventory:
        """Look at this machine; ports are free at this moment."""
        try:
            engine = version("sglang")
        except PackageNotFoundError:
            engine = None
        return Inventory(
            python=sys.executable,
            engine=engine,
            cpus=tuple(sorted(os.sched_getaffinity(0))),
            standins=tuple(name for name in MODULES if find_spec(name) is None),
            ports=free_ports(ranks + 1),
        )

    def start(self, commands: Sequence[RankCommand], run_dir: Path, key: str | None = None) -> None:
        """Start each rank in a session of its own; its output is appended to its log.

        The key is not needed: the rank that guards its API reads the key's file.
        """
        for command in commands:
            self._start(command, run_dir)

    def _start(self, command: RankCommand, run_dir: Path) -> None:
        env = {name: os.environ[name] for name in INHERITED if name in os.environ}
        env |= dict(command.env)
        env |= {RUN_DIR: str(run_dir), RANK: str(command.rank)}
        record = str(exit_path(run_dir, command.rank))
        with log_path(run_dir, command.rank).open("ab") as log:
            subprocess.run(
                ["setsid", "--fork", "/bin/sh", "-c", SUPERVISOR, "rank", record, *command.argv],
                env=env,
                cwd=run_dir,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                check=True,
            )

    def inspect(self, run_dir: Path, nodes: Sequence[str]) -> tuple[RankState, ...]:
        """Return the state of every rank of a run, in rank order."""
        alive = labelled(run_dir)
        return tuple(
            _state(rank, [one for one in alive if one.rank == rank], run_dir)
            for rank in range(len(nodes))
        )

    def shared_memory(self, run_dir: Path) -> set[Path]:
        """Return the shared memory files that the processes of a run have mapped."""
        return shared_memory.mapped(process.pid for process in labelled(run_dir))

    def present(self, root: Path) -> Present:
        """Return the processes of every run under `root`."""
        return Present(
            tuple(Part(one.run_dir.name, one.rank, str(one.pid)) for one in labelled(root))
        )

    def way_to(self, node: str, host: str, port: int) -> None:
        """Return None: ranks of this machine listen on this machine."""

    def stop(
        self, root: Path, grace: float, leftovers: Iterable[Path] = (), run: str | None = None
    ) -> Stopped:
        """Ask every rank's engine to end, kill what is left after `grace` seconds, clean up."""
        root = root / run if run else root
        found = labelled(root)
        files = {*leftovers, *shared_memory.mapped(process.pid for process in found)}
        asked = [process.pid for process in found if _is_main(process, found)]
        for pid in asked:
            _signal(pid, signal.SIGTERM)
            _signal(pid, signal.SIGCONT)
        _wait_until_gone(root, grace)
        killed: list[int] = []
        deadline = time.monotonic() + KILL_SECONDS
        while remaining := labelled(root):
            if time.monotonic() > deadline:
                raise _unkillable(remaining)
            for process in remaining:
                _signal(process.pid, signal.SIGKILL)
                killed.append(process.pid)
            _wait_until_gone(root, 1.0)
        removed = map(str, shared_memory.remove(files))
        return Stopped(
            tuple(map(str, asked)), tuple(map(str, dict.fromkeys(killed))), tuple(removed)
        )


def _state(rank: int, alive: list[Process], run_dir: Path) -> RankState:
    pids = tuple(process.pid for process in alive if process.state != "Z")
    ended, problem = known_exit(run_dir, rank)
    if ended is not None:
        return RankState(rank, "exited", pids, ended)
    if not pids:
        return RankState(rank, "absent" if problem is None else "exited", problem=problem)
    frozen = any(process.state == "T" for process in alive)
    return RankState(rank, "frozen" if frozen else "running", pids, problem=problem)


def _is_main(process: Process, found: list[Process]) -> bool:
    """Tell whether this is a rank's engine itself: the supervisor's child, or its orphan."""
    leader = next((one for one in found if one.pid == process.session), None)
    if process.leads:
        return False
    if leader is not None:
        return process.parent == leader.pid
    return process.parent not in {one.pid for one in found}


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _unkillable(remaining: list[Process]) -> RunError:
    names = ", ".join(f"{one.pid} ({one.name}, state {one.state})" for one in remaining)
    return RunError(
        Problem(
            where="this machine",
            seen=f"still there {KILL_SECONDS:.0f} s after SIGKILL: {names}",
            wanted="no process of the line",
            fix="look at what they wait for: cat /proc/PID/stack",
        )
    )


def _wait_until_gone(root: Path, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while labelled(root) and time.monotonic() < deadline:
        time.sleep(0.1)
