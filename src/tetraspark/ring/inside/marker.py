"""The marker of an RDMA device as an object of the ring: a process, found by what it is and does.

It is built on the node from source that came with the request; its folder is named after that
source, and the binary's own hash is kept beside it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tetraspark.ring.inside import store
from tetraspark.ring.inside.kind import Described, Look
from tetraspark.ring.inside.say import Refusal, environment, must, problem
from tetraspark.ring.inside.seen import Seen

READY_SECONDS = 10.0
END_SECONDS = 10.0
FOLDER = store.STATE / "marker"


@dataclass(frozen=True)
class Process:
    """A running program: its pid and its argv."""

    pid: int
    argv: tuple[str, ...]


@dataclass(frozen=True)
class MarkerObject(Described):
    """A marker on a device: what is sent to each of `marks`' addresses leaves with that tag.

    `marks` are `ADDRESS=0xTAG`, sorted; `source` is the hash of the program's source.
    """

    kind: ClassVar[str] = "marker"

    device: str
    marks: tuple[str, ...]
    source: str

    @property
    def key(self) -> str:
        """A device has one marker."""
        return f"marker {self.device}"

    @property
    def path(self) -> Path:
        """The program on this node."""
        return FOLDER / self.source[:16] / "marker"

    @property
    def argv(self) -> tuple[str, ...]:
        """The command whose process is this marker."""
        marks = (word for mark in self.marks for word in ("--mark", mark))
        return (str(self.path), "--device", self.device, *marks)

    def look(self, seen: Seen) -> Look:
        """One process of our program with these words, and none of anybody's beside it."""
        found = list(running(self.device))
        ours = [one for one in found if one.argv == self.argv]
        others = [one for one in found if one not in ours]
        if others:
            words = " ".join(others[0].argv)
            mine = all(one.argv[0].startswith(f"{FOLDER}/") for one in found)
            return Look("different", f"pid {others[0].pid} marks it: {words}", marked=mine)
        if not ours:
            return Look("missing")
        if len(ours) > 1:
            return Look("different", f"{len(ours)} markers at once", marked=True)
        recorded = store.sha256(self.path)
        if recorded is None or store.sha256(Path(f"/proc/{ours[0].pid}/exe")) != recorded:
            return Look("different", f"pid {ours[0].pid} is of another binary", marked=True)
        return Look("present", f"pid {ours[0].pid}", marked=True)

    def make(self) -> None:
        """Start it, and wait until it says that its rules are there."""
        end(one for one in running(self.device) if one.argv[0].startswith(f"{FOLDER}/"))
        log = FOLDER / f"{self.device}.log"
        with log.open("ab") as file:
            process = subprocess.Popen(
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=file,
                env=environment(),
                start_new_session=True,
            )
        if not _ready(process):
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()
            last = (log.read_text(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
            wanted = f"its rules in the card within {READY_SECONDS:g} s"
            fix = f"ibv_devices; ls -l /dev/infiniband; cat {log}"
            raise Refusal(problem(self.key, f"the marker ended: {last[:300]}", wanted, fix))

    def unmake(self, before: str | None) -> None:
        """End it with SIGTERM: it takes its rules out of the card first."""
        end(one for one in running(self.device) if one.argv[0].startswith(f"{FOLDER}/"))


def build(source: str) -> None:
    """Build the program unless it is there. Raises Refusal without a compiler or its headers."""
    digest = hashlib.sha256(source.encode()).hexdigest()
    folder = FOLDER / digest[:16]
    if (folder / "marker").is_file():
        return
    store.write(folder / "marker.c", source.encode())
    part = folder / f".marker.{os.getpid()}"
    argv = ["cc", "-O2", "-Wall", "-o", str(part), str(folder / "marker.c"), "-lmlx5", "-libverbs"]
    try:
        must(argv, 60.0)
    except Refusal as error:
        wanted, fix = "the marker built on the node", "apt-get install gcc libibverbs-dev"
        raise Refusal(problem("marker", error.problems[0]["seen"], wanted, fix)) from error
    store.write(folder / "marker", part.read_bytes(), 0o755)
    store.remove(part)


def running(device: str) -> Iterator[Process]:
    """Return every process that marks a device, whoever's it is."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            text = (folder / "cmdline").read_bytes().rstrip(b"\0").decode("utf-8", "replace")
            argv = tuple(text.split("\0"))
            pairs = zip(argv, argv[1:])  # noqa: B905, RUF007 not in Python 3.9
            if "marker" in Path(argv[0]).name and ("--device", device) in pairs:
                yield Process(int(folder.name), argv)


def end(processes: Iterator[Process]) -> None:
    """End processes, and see them gone. Raises Refusal for one that stays."""
    for one in list(processes):
        with contextlib.suppress(ProcessLookupError):
            os.kill(one.pid, signal.SIGTERM)
        deadline = time.monotonic() + END_SECONDS
        while _alive(one.pid):
            if time.monotonic() > deadline:
                seen = f"pid {one.pid} does not end after SIGTERM"
                wanted = "a marker that takes its rules along"
                raise Refusal(problem("marker", seen, wanted, f"cat /proc/{one.pid}/stack"))
            time.sleep(0.02)


def _alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        os.waitpid(pid, os.WNOHANG)
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _ready(process: subprocess.Popen[bytes]) -> bool:
    assert process.stdout is not None
    with process.stdout as stream, selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        return bool(selector.select(READY_SECONDS)) and stream.readline() == b"ready\n"
