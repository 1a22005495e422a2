"""Where each process of a rank is: its stacks, or what the kernel tells of it; printed as JSON.

Runs on the node or inside the rank's container with `python3 -I -`, from stdin, so it needs the
standard library alone and imports nothing of the package. REQUEST stands for a JSON object and is
put in by the sender. It stops nothing: py-spy reads from outside where it is there, else a process
that has a handler for SIGUSR1 is asked to write its stacks, and no other one gets the signal.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

REQUEST = "{}"
SCHEDULER = "scheduler"
LABEL, RANK = "TETRASPARK_RUN_DIR", "TETRASPARK_RANK"
ANSWER_SECONDS = 2.0
QUIET_SECONDS = 0.3
SPY_SECONDS = 10.0
MOST_BYTES = 1 << 20


def labels(folder: Path) -> dict[str, str]:
    """Return the environment of a process."""
    text = (folder / "environ").read_bytes().decode("utf-8", "replace")
    return dict(item.split("=", 1) for item in text.split("\0") if "=" in item)


def status(folder: Path) -> dict[str, str]:
    """Return /proc/PID/status."""
    lines = (folder / "status").read_text("utf-8", "replace").splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def handles(fields: dict[str, str]) -> bool:
    """Tell whether a process has a handler of its own for SIGUSR1, which would end it else."""
    return bool(int(fields["SigCgt"], 16) >> (signal.SIGUSR1 - 1) & 1)


def processes(run_dir: str) -> list[tuple[Path, int]]:
    """Return the processes of a run, and the rank of each."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            env = labels(folder)
            if env.get(LABEL) == run_dir and folder.name != str(os.getpid()):
                found.append((folder, int(env[RANK])))
    return sorted(found, key=lambda one: (one[1], int(one[0].name)))


def kernel(folder: Path) -> str:
    """Return what the kernel tells of a process: where it sleeps, and the time it has had."""
    found = []
    for name in ("wchan", "syscall", "stack"):
        with contextlib.suppress(OSError):
            found.append(f"{name}: {(folder / name).read_text().strip()}")
    return "\n".join(found)


def spied(pid: str) -> str | None:
    """Return what py-spy sees of a process, or None where it is not here or may not look."""
    if shutil.which("py-spy") is None:
        return None
    argv = ["py-spy", "dump", "--nonblocking", "--pid", pid]
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(argv, capture_output=True, timeout=SPY_SECONDS, check=False)
        if done.returncode == 0:
            return done.stdout.decode("utf-8", "replace")
    return None


def told(pid: int, file: Path) -> str | None:
    """Ask a process for its stacks; None when it does not write any in time."""
    begin = size(file)
    os.kill(pid, signal.SIGUSR1)
    deadline = time.monotonic() + ANSWER_SECONDS
    while size(file) == begin:
        if time.monotonic() > deadline:
            return None
        time.sleep(0.02)
    end = size(file)
    time.sleep(QUIET_SECONDS)
    while (now := size(file)) != end and time.monotonic() < deadline:
        end = now
        time.sleep(QUIET_SECONDS)
    with file.open("rb") as stream:
        stream.seek(begin)
        return stream.read(MOST_BYTES).decode("utf-8", "replace")


def size(file: Path) -> int:
    """Return the size of a file, 0 for none."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


def seen(folder: Path, rank: int) -> dict[str, Any] | None:
    """Return what the kernel knows of a process; None for one that has no stacks to write."""
    fields = status(folder)
    if not handles(fields):
        return None
    title = (folder / "cmdline").read_bytes().split(b"\0")[0].decode("utf-8", "replace")
    return {
        "pid": int(folder.name),
        "rank": rank,
        "name": title or fields["Name"],
        "state": fields["State"],
        "how": "kernel",
        "text": kernel(folder),
    }


def ask(process: dict[str, Any], run_dir: str) -> None:
    """Put the stacks of a process in the place of the kernel's words, where they can be had.

    A stopped process handles no signal before it goes on: it is not sent one.
    """
    text = spied(str(process["pid"]))
    if text is not None:
        process.update(how="py-spy", text=text)
    elif process["state"][0] not in "TtZ":
        text = told(process["pid"], Path(run_dir, f"rank{process['rank']}.stacks"))
        if text is not None:
            process.update(how="signal", text=text)


def ask_all(found: list[dict[str, Any]], run_dir: str) -> None:
    """Ask the processes of one rank, one after the other: they share a file."""
    for process in found:
        # One that ends meanwhile is gone: the others are asked all the same.
        with contextlib.suppress(OSError):
            ask(process, run_dir)


def main() -> None:
    """Look at every process of a run before any is asked, ask the ranks at once, and print."""
    run_dir = json.loads(REQUEST)["run_dir"]
    found = []
    for folder, rank in processes(run_dir):
        with contextlib.suppress(OSError, KeyError):
            process = seen(folder, rank)
            if process is not None:
                found.append(process)
    found.sort(key=lambda one: (one["rank"], SCHEDULER not in one["name"], one["pid"]))
    ranks = sorted({one["rank"] for one in found})
    with ThreadPoolExecutor(max(len(ranks), 1)) as pool:
        for rank in ranks:
            pool.submit(ask_all, [one for one in found if one["rank"] == rank], run_dir)
    json.dump({"processes": found}, sys.stdout)


if __name__ == "__main__":
    main()
