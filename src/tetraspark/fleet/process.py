"""Processes of a run, found by the label in their environment.

Nothing is remembered between commands: a pid that was written down can belong to somebody else
by now, a label cannot. The engine renames its processes, which would overwrite the label, so a
run also sets `SPT_NOENV`.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from tetraspark.engine.label import RANK, RUN_DIR

PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    """A live process of a run. `state` is the kernel's letter (R, S, D, T, Z)."""

    pid: int
    parent: int
    session: int
    state: str
    name: str
    rank: int
    run_dir: Path

    @property
    def leads(self) -> bool:
        """Whether it leads its session: the rank's supervisor."""
        return self.pid == self.session


def labelled(root: Path, proc: Path = PROC) -> list[Process]:
    """Return the live processes whose run folder is `root` or lies under it, by rank and pid.

    Processes of other users, and those that end while being read, are passed over.
    """
    found = []
    for folder in proc.iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            process = _read(folder, root)
            if process is not None:
                found.append(process)
    return sorted(found, key=lambda process: (process.rank, process.pid))


def _read(folder: Path, root: Path) -> Process | None:
    try:
        environ = (folder / "environ").read_bytes()
        if RUN_DIR.encode() not in environ:
            return None
        stat = (folder / "stat").read_text(encoding="utf-8", errors="replace")
        title = (folder / "cmdline").read_bytes().split(b"\0")[0]
    except OSError:
        return None
    labels = dict(item.split(b"=", 1) for item in environ.split(b"\0") if b"=" in item)
    run_dir = Path(os.fsdecode(labels.get(RUN_DIR.encode(), b"")))
    rank = labels.get(RANK.encode(), b"")
    if not run_dir.is_relative_to(root) or not rank.isdigit():
        return None
    name, fields = split_stat(stat)
    return Process(
        pid=int(folder.name),
        parent=int(fields[1]),
        session=int(fields[3]),
        state=fields[0],
        name=os.fsdecode(title) if title.startswith(b"sglang::") else name,
        rank=int(rank),
        run_dir=run_dir,
    )


def split_stat(text: str) -> tuple[str, list[str]]:
    """Split /proc/PID/stat into the name and the fields after it (state, ppid, pgrp, session)."""
    head, tail = text.rsplit(")", 1)
    return head.split("(", 1)[1], tail.split()
