"""Where each rank of a run stands: the stacks of its processes, from its node or container."""

import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from tetraspark.bundle.collect import HERE
from tetraspark.errors import RunError
from tetraspark.fleet.command import NodeRunner
from tetraspark.fleet.container import container_name
from tetraspark.fleet.program import ask
from tetraspark.line.docker_run import RUN_MOUNT
from tetraspark.line.run import Run

SECONDS = 60.0
SCHEDULER = "sglang::scheduler"
FRAMES = 3
_FRAME = re.compile(r'^  File "(?:.*/)?([^"/]+)", line (\d+) in (.+)$', re.MULTILINE)
_SPY_FRAME = re.compile(r"^    (\S+) \((?:.*/)?([^():]+):(\d+)\)$", re.MULTILINE)


@dataclass(frozen=True)
class Stack:
    """One process: its state in the kernel's words, and its stacks, or what stands for them.

    `how` is "py-spy", "signal" or "kernel": the last where the process could not be asked.
    """

    rank: int
    pid: int
    name: str
    state: str
    how: str
    text: str

    def __str__(self) -> str:
        head = f"== rank {self.rank} pid {self.pid} {self.name}, state {self.state} ({self.how})"
        return f"{head}\n{self.text.rstrip()}\n"

    @property
    def place(self) -> str:
        """Where it stands, in one line: the innermost frames of the thread that was asked."""
        at = self.text.find("Current thread")
        frames = [f"{what} ({file}:{line})" for file, line, what in _FRAME.findall(self.text[at:])]
        spied = _SPY_FRAME.findall(self.text)
        frames = frames or [f"{what} ({file}:{line})" for what, file, line in spied]
        kernel = " ".join(self.text.split())[:120]
        where = " < ".join(frames[:FRAMES]) if self.how != "kernel" else f"kernel: {kernel}"
        stopped = f"stopped ({self.state}), " if self.state[:1] in "Tt" else ""
        return f"{self.name}: {stopped}{where}"


def gather_stacks(
    run: Run, plan: Mapping[str, Any], nodes: NodeRunner
) -> tuple[list[Stack], dict[str, str]]:
    """Return the stacks of all ranks, and for each node that told none, why."""
    asked: list[tuple[str, str | None, str]] = [(HERE, None, str(run.folder))]
    if plan["kind"] != "local":
        asked = [
            (rank["node"], container_name(plan["line"], rank["rank"]), RUN_MOUNT)
            for rank in plan["ranks"]
        ]
    failed: dict[str, str] = {}

    def one(place: tuple[str, str | None, str]) -> list[Stack]:
        node, container, run_dir = place
        try:
            return read_stacks(ask(nodes, node, "stacks", {"run_dir": run_dir}, SECONDS, container))
        except RunError as error:
            failed[node] = str(error)
            return []

    with ThreadPoolExecutor(len(asked)) as pool:
        return [stack for found in pool.map(one, asked) for stack in found], failed


def read_stacks(found: Mapping[str, Any]) -> list[Stack]:
    """Read what the program on a node printed."""
    names = ("rank", "pid", "name", "state", "how", "text")
    return [Stack(**{name: one[name] for name in names}) for one in found["processes"]]


def places(stacks: Iterable[Stack]) -> dict[str, str]:
    """Return where each rank's scheduler stands, by rank; another process where it has none."""
    found: dict[str, str] = {}
    for stack in sorted(stacks, key=lambda one: not one.name.startswith(SCHEDULER)):
        found.setdefault(str(stack.rank), stack.place)
    return dict(sorted(found.items()))
