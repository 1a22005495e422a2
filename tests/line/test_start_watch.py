"""The watchers of a start: what they pass, and what they end it for."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.line.launch_facts import SITE
from tetraspark.errors import Problem, RunError
from tetraspark.fleet.command import NodeCommand, OnLine, Result
from tetraspark.fleet.rank import RankState
from tetraspark.line.engine_log import Line, parse
from tetraspark.line.start_watch import EngineGuard, MemoryGuard
from tetraspark.site.load import LoadedSite, load_site

WELL = (RankState(0, "running"), RankState(1, "running"))
POOL = "[2026-11-30 08:00:00 TP{}] KV Cache is allocated. dtype: x, #tokens: {}, K size: 0.00 GB"


@dataclass(frozen=True)
class Seen:
    phase: str
    lines: tuple[Line, ...] = ()
    states: tuple[RankState, ...] = WELL


class Nodes:
    """Two nodes whose MemFree and MemAvailable (GiB) a test sets."""

    def __init__(self) -> None:
        self.memory = {"spark1": (40, 60), "spark2": (40, 60)}

    def run(self, node: str, command: NodeCommand, on_line: OnLine | None = None) -> Result:
        free, available = (gib << 20 for gib in self.memory[node])
        text = f"MemTotal: {128 << 20} kB\nMemFree: {free} kB\nMemAvailable: {available} kB\n"
        return Result(0, text, "")

    def copy(self, node: str, folder: Path, target: str, timeout: float) -> None:
        raise NotImplementedError

    def interrupt(self) -> None:
        raise NotImplementedError


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], LoadedSite]:
    def load(more: str = "") -> LoadedSite:
        path = tmp_path / "two.toml"
        path.write_text(SITE.replace("tp = 2,", "tp = 2, kv_tokens = 4096,") + more)
        return load_site(path)

    return load


def pools(*tokens: int) -> tuple[Line, ...]:
    return tuple(parse(rank, [POOL.format(rank, n)])[0] for rank, n in enumerate(tokens))


def test_a_node_that_runs_out_of_memory_ends_the_start(load: Callable[[str], LoadedSite]) -> None:
    nodes, now = Nodes(), [0.0]
    guard = MemoryGuard(load(""), nodes, lambda problem: None, lambda: now[0])
    guard(Seen("load"))
    nodes.memory["spark2"] = (0, 1)
    guard(Seen("load"))  # not yet time to look again
    now[0] += 5
    with pytest.raises(RunError, match=r"spark2: MemFree 0\.0 GiB, MemAvailable 1\.0 GiB"):
        guard(Seen("load"))


def test_a_process_killed_for_memory_ends_the_start(load: Callable[[str], LoadedSite]) -> None:
    killed = (RankState(0, "running"), RankState(1, "running", out_of_memory=True))
    guard = MemoryGuard(load(""), Nodes(), lambda problem: None)
    with pytest.raises(RunError, match=r"rank 1 \(spark2\): .*OOMKilled"):
        guard(Seen("load", states=killed))


def test_each_node_is_warned_of_once(load: Callable[[str], LoadedSite]) -> None:
    now, nodes, told = [0.0], Nodes(), list[Problem]()
    guard = MemoryGuard(load(""), nodes, told.append, lambda: now[0])
    guard(Seen("load"))
    assert told == []
    nodes.memory["spark1"] = (2, 60)
    for _ in range(3):
        now[0] += 5
        guard(Seen("load"))
    assert [one.where for one in told] == ["spark1"]


def test_a_pool_is_judged_when_every_rank_has_made_one(load: Callable[[str], LoadedSite]) -> None:
    guard = EngineGuard(load(""))
    guard(Seen("load", pools(4096)))
    guard(Seen("load"))
    with pytest.raises(RunError, match=r"rank 1 \(spark2\): its log does not tell its KV pool"):
        guard(Seen("warmup"))


def test_a_pool_that_was_cut_down_ends_the_start(load: Callable[[str], LoadedSite]) -> None:
    guard = EngineGuard(load(""))
    guard(Seen("load", pools(4096, 2048)))
    with pytest.raises(RunError, match=r"rank 1 \(spark2\): a KV pool of 2048 tokens, 4096 on"):
        guard(Seen("warmup"))


def test_a_line_as_planned_goes_on_until_a_rank_takes_sockets(
    load: Callable[[str], LoadedSite],
) -> None:
    guard = EngineGuard(load(""))
    guard(Seen("load", pools(4096, 4096)))
    guard(Seen("warmup"))
    with pytest.raises(RunError, match=r"rank 0 \(spark1\): NCCL uses TCP sockets"):
        guard(Seen("canary", tuple(parse(0, ["x:1:2 [0] NCCL INFO Using network Socket"]))))
