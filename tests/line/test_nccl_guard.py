"""NCCL of a start, looked at in the containers: what passes, what ends it, what is not known."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.fabric.nccl_sites import site
from tests.fabric.sparks import ring
from tests.fabric.test_nccl_checks import FUSED, PIP, maps
from tests.line.ring_launch import launched
from tetraspark.errors import Problem, RunError
from tetraspark.fabric.nccl_profile import NcclProfile
from tetraspark.fleet.command import NodeCommand, OnLine, Result
from tetraspark.fleet.inside.nccl import hashes, processes
from tetraspark.fleet.program import program
from tetraspark.fleet.rank import RankState
from tetraspark.line.engine_log import Line, parse
from tetraspark.line.fleet_plan import fleet_plan
from tetraspark.line.nccl_guard import NcclGuard
from tetraspark.line.plan import Plan

PROGRAM = ("python3", "-I", "-")
RANKS = tuple(RankState(rank, "running") for rank in range(4))


@dataclass(frozen=True)
class Seen:
    phase: str
    lines: tuple[Line, ...] = ()
    states: tuple[RankState, ...] = RANKS


@dataclass
class Nodes:
    """Nodes whose containers answer as a test says; None is a container that is not there."""

    answers: dict[str, dict[str, Any] | None]
    asked: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def run(self, node: str, command: NodeCommand, on_line: OnLine | None = None) -> Result:
        self.asked.append((node, command.argv))
        answer = self.answers[node]
        if answer is None:
            return Result(1, "", "Error response from daemon: No such container")
        return Result(0, json.dumps(answer), "")

    def copy(self, node: str, folder: Path, target: str, timeout: float) -> None:
        raise NotImplementedError

    def interrupt(self) -> None:
        raise NotImplementedError


class Start:
    """A start of a modelled ring, whose containers show what is planned until a test changes it."""

    def __init__(self) -> None:
        loaded = site()
        launch = launched(ring(), loaded)
        assert launch.nccl is not None
        self.profile: NcclProfile = launch.nccl
        self.plan: Plan = fleet_plan(loaded, launch)
        self.warnings: list[Problem] = []
        self.nodes = Nodes(
            {
                rank.node: {
                    "maps": [maps(), maps(PIP)],
                    "sha256": {PIP: "ab" * 32},
                    "environment": dict(self.profile.environment),
                    "conf": {},
                }
                for rank in self.plan.ranks
            }
        )
        self.guard = NcclGuard(self.nodes, self.plan, self.profile, self.warnings.append)

    def shown(self, node: str) -> dict[str, Any]:
        answer = self.nodes.answers[node]
        assert answer is not None
        return answer

    def look(self, phase: str, texts: list[str]) -> None:
        lines = [line for rank in range(4) for line in parse(rank, texts)]
        self.guard(Seen(phase, tuple(lines)))

    def problems(self) -> list[tuple[str, str]]:
        """Return where and what ends this start, once every rank listens."""
        with pytest.raises(RunError) as caught:
            self.look("warmup", FUSED)
        return [(one.where, one.seen) for one in caught.value.problems]


@pytest.fixture
def start() -> Start:
    return Start()


def test_a_start_as_planned_is_looked_at_once_when_every_rank_listens(start: Start) -> None:
    start.look("load", FUSED)
    assert start.nodes.asked == []
    for phase in ("warmup", "warmup", "canary"):
        start.look(phase, [])
    assert {one.verdict for one in start.guard.checks} == {"ok"}
    assert sorted(start.nodes.asked) == [
        (f"spark{n + 1}", ("docker", "exec", "--interactive", f"tetraspark-ring-r{n}", *PROGRAM))
        for n in range(4)
    ]


def test_R8_a_rank_without_a_variable_of_the_ring_ends_the_start(start: Start) -> None:
    del start.shown("spark3")["environment"]["NCCL_ALGO"]
    start.shown("spark2")["environment"]["NCCL_CUMEM_ENABLE"] = "0"
    assert start.problems() == [
        ("spark2 NCCL.VARIABLES", "NCCL_CUMEM_ENABLE=0, not NCCL_CUMEM_ENABLE=1"),
        ("spark3 NCCL.VARIABLES", "without NCCL_ALGO=Ring"),
    ]


def test_R1_trees_that_were_connected_end_the_start(start: Start) -> None:
    start.look("load", ["NCCL INFO Connected all trees"])
    found = start.problems()
    assert found == [(f"spark{n} NCCL.TREES", "trees were connected") for n in range(1, 5)]


def test_another_library_on_one_rank_ends_the_start(start: Start) -> None:
    start.shown("spark4")["sha256"] = {PIP: "cd" * 32}
    ((where, seen),) = start.problems()
    assert where == "NCCL.SAME"
    assert "spark4 cdcdcdcdcdcd" in seen


def test_a_file_that_hangs_the_first_collective_ends_the_start(start: Start) -> None:
    start.shown("spark1")["conf"] = {"/etc/nccl.conf": "NCCL_IB_USE_INLINE=1\n"}
    ((where, seen),) = start.problems()
    assert where == "spark1 NCCL.CONF"
    assert "NCCL_IB_USE_INLINE=1" in seen


def test_a_file_that_does_no_harm_is_warned_of(start: Start) -> None:
    start.shown("spark1")["conf"] = {"/etc/nccl.conf": "NCCL_IB_TIMEOUT=22\n"}
    start.look("warmup", FUSED)
    assert [one.where for one in start.warnings] == ["spark1 NCCL.CONF"]


def test_a_container_that_shows_nothing_is_unknown_and_ends_nothing(start: Start) -> None:
    nothing: dict[str, Any] = {"maps": [], "sha256": {}, "environment": None, "conf": {}}
    start.nodes.answers = {"spark1": None, **{f"spark{n}": nothing for n in range(2, 5)}}
    start.look("warmup", [])
    assert {one.verdict for one in start.guard.checks} == {"unknown"}
    assert start.warnings == []


MAPPING = """
import mmap, sys
with open(sys.argv[1], "rb") as file:
    mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    print("mapped", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Path]:
    """A file that a process with variables has mapped."""
    path = tmp_path / "libnccl.so.2"
    path.write_bytes(b"nccl" * 1024)
    process = subprocess.Popen(
        [sys.executable, "-c", MAPPING, str(path)],
        env={"NCCL_ALGO": "Ring", "HF_TOKEN": "hf_never", "NCCL_NET": "a=b"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"mapped\n"
        yield path


def test_the_program_finds_the_processes_that_have_the_library(library: Path) -> None:
    found = [(text, told) for text, told in processes() if str(library) in text]
    ((text, told),) = found
    assert told == {"NCCL_ALGO": "Ring", "NCCL_NET": "a=b"}
    known = hashes([text])
    assert list(known) == [str(library)]
    sums = subprocess.run(["sha256sum", library], capture_output=True, text=True, check=True)
    assert known[str(library)] == sums.stdout.split()[0]


def test_the_program_runs_alone_and_tells_no_secret(library: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-"], input=program("nccl", {}), capture_output=True, check=True
    )
    assert b"hf_never" not in done.stdout
    found = json.loads(done.stdout)
    assert set(found) == {"maps", "sha256", "environment", "conf"}
    assert str(library) in found["sha256"]
    library.unlink()
    done = subprocess.run(
        [sys.executable, "-I", "-"], input=program("nccl", {}), capture_output=True, check=True
    )
    found = json.loads(done.stdout)
    assert any(f"{library} (deleted)" in text for text in found["maps"])
    assert str(library) not in found["sha256"]
