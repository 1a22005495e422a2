"""The local runner: ranks are process groups on this machine."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tetraspark.engine.label import RANK, RUN_DIR
from tetraspark.engine.progress import progress_path
from tetraspark.engine.standins import MODULES
from tetraspark.errors import Problem, RunError
from tetraspark.fleet.port import free_ports
from tetraspark.fleet.process import Process, labelled, shared_memory
from tetraspark.fleet.rank import Exit, RankCommand, RankState
from tetraspark.fleet.runner import Inventory, Stopped

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


def log_path(run_dir: Path, rank: int) -> Path:
    """Return the file that a rank prints to."""
    return run_dir / f"rank{rank}.log"


def exit_path(run_dir: Path, rank: int) -> Path:
    """Return the file that records how a rank ended."""
    return run_dir / f"rank{rank}.exit"


class LocalRunner:
    """Runs ranks as sessions of their own on this machine."""

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

    def start(self, command: RankCommand, run_dir: Path) -> None:
        """Start one rank in a session of its own; its output is appended to its log."""
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

    def inspect(self, run_dir: Path, ranks: int) -> tuple[RankState, ...]:
        """Return the state of every rank of a run, in rank order."""
        alive = labelled(run_dir)
        return tuple(
            _state(rank, [one for one in alive if one.rank == rank], exit_path(run_dir, rank))
            for rank in range(ranks)
        )

    def read_log(self, run_dir: Path, rank: int, offset: int, size: int = -1) -> bytes:
        """Return what a rank has printed from a byte offset on; nothing when it has no log."""
        try:
            with log_path(run_dir, rank).open("rb") as log:
                log.seek(offset)
                return log.read(size)
        except FileNotFoundError:
            return b""

    def log_size(self, run_dir: Path, rank: int) -> int:
        """Return how many bytes a rank has printed; none when it has no log."""
        try:
            return log_path(run_dir, rank).stat().st_size
        except FileNotFoundError:
            return 0

    def shared_memory(self, run_dir: Path) -> set[Path]:
        """Return the shared memory files that the processes of a run have mapped."""
        return shared_memory([process.pid for process in labelled(run_dir)])

    def read_progress(self, run_dir: Path, rank: int) -> dict[str, Any] | None:
        """Return what a rank's communicator last wrote about itself, or None."""
        try:
            progress = json.loads(progress_path(run_dir, rank).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        return progress if isinstance(progress, dict) else None

    def live(self, root: Path) -> tuple[int, ...]:
        """Return the processes of every run under `root`."""
        return tuple(process.pid for process in labelled(root))

    def stop(self, root: Path, grace: float, leftovers: Iterable[Path] = ()) -> Stopped:
        """Ask every rank's engine to end, kill what is left after `grace` seconds, clean up."""
        found = labelled(root)
        files = {*leftovers, *shared_memory([process.pid for process in found])}
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
        removed = [str(file) for file in sorted(files) if _remove(file)]
        return Stopped(tuple(asked), tuple(dict.fromkeys(killed)), tuple(removed))


def _state(rank: int, alive: list[Process], record: Path) -> RankState:
    ended = _read_exit(record)
    pids = tuple(process.pid for process in alive if process.state != "Z")
    if ended is not None:
        return RankState(rank, "exited", pids, ended)
    if not pids:
        return RankState(rank, "absent")
    frozen = any(process.state == "T" for process in alive)
    return RankState(rank, "frozen" if frozen else "running", pids)


def _read_exit(record: Path) -> Exit | None:
    try:
        code, at = record.read_text(encoding="utf-8").split()
    except FileNotFoundError:
        return None
    return Exit(int(code), float(at))


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


def _remove(file: Path) -> bool:
    try:
        file.unlink()
    except FileNotFoundError:
        return False
    return True
