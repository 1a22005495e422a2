"""Is the process of a peer on this host running, stopped or gone? Read from /proc."""

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Life(StrEnum):
    """Verdict on one peer's process; UNKNOWN where it cannot be seen from here."""

    RUNNING = "running"
    STOPPED = "stopped"
    DEAD = "dead"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Process:
    """A process that cannot be mistaken for a later one with its pid.

    `start` is the start time in clock ticks since boot; `namespace` names boot and pid namespace.
    """

    pid: int
    start: int
    namespace: str


def parse_stat(text: str) -> tuple[str, int]:
    """Return (state letter, start time) of /proc/PID/stat. Raises ValueError if it is not one."""
    fields = text.rpartition(")")[2].split()
    if len(fields) < 20 or not text.rpartition(")")[1]:
        raise ValueError(f"not a process status: {text[:80]!r}")
    return fields[0], int(fields[19])


def judge(stat: str | None, start: int) -> Life:
    """Judge a process by its status text, None when there is none.

    The letters are those of proc_pid_stat(5): Z and X are dead, T and t stopped.
    """
    if stat is None:
        return Life.DEAD
    state, seen = parse_stat(stat)
    if seen != start or state in "ZXx":
        return Life.DEAD
    return Life.STOPPED if state in "Tt" else Life.RUNNING


def read_stat(pid: int) -> str | None:
    """Return the text of /proc/PID/stat, or None when the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None


def namespace() -> str:
    """Return a name of this boot and pid namespace."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {Path('/proc/self/ns/pid').readlink()}"


def this_process() -> Process:
    """Return the identity of the calling process."""
    stat = read_stat(os.getpid())
    if stat is None:
        raise OSError("/proc does not show this process")
    return Process(os.getpid(), parse_stat(stat)[1], namespace())


def life_of(process: Process, own_namespace: str) -> Life:
    """Return what /proc says of a process now."""
    if process.namespace != own_namespace:
        return Life.UNKNOWN
    return judge(read_stat(process.pid), process.start)
