"""What ends a start: by name, with numbers, and from cheap looks alone."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tetraspark.errors import Problem, RunError
from tetraspark.fleet.command import NodeCommand, OnLine, Result
from tetraspark.fleet.meminfo import GIB, Memory, large_blocks, read_meminfo
from tetraspark.fleet.rank import Exit, RankState
from tetraspark.line.driver_watch import DriverWatch
from tetraspark.line.memory_watch import MemoryWatch
from tetraspark.line.startup_guard import (
    count_no_memory,
    driver_short,
    ending,
    warnings,
)
from tetraspark.site.startup import Startup

# What a machine shows whose page cache holds a checkpoint.
CACHED = """\
MemTotal:       127599616 kB
MemFree:          2097152 kB
MemAvailable:   122683392 kB
Buffers:            10000 kB
Cached:         119537664 kB
HugePages_Total:       0
"""
NVRM = (
    "[ 81.2] NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] "
    "(0x00000051) returned from _memdescAllocInternal\n"
)
BUDDY = (
    "Node 0, zone      DMA      1      1      1      1      1      1      1      1      1      2\n"
    "Node 0, zone   Normal  90211  40022  1200  310  40  8  1  0  0  0  3\n"
)
LIMITS = Startup()
NODES = ["spark1", "spark2", "spark3", "spark4"]


def memory(free: float = 40, available: float = 60) -> Memory:
    return Memory(128 * GIB, int(free * GIB), int(available * GIB))


def rank(number: int = 2, code: int | None = None, **found: Any) -> RankState:
    if code is not None:
        return RankState(number, "exited", exit=Exit(code, 0.0), **found)
    return RankState(number, "running", **found)


def end(states: list[RankState], found: Mapping[str, Memory | None] | None = None) -> Problem:
    problem = ending(states, NODES, found or {}, LIMITS)
    assert problem is not None
    return problem


def test_a_start_that_is_well_goes_on() -> None:
    well = {"spark1": memory(), "spark2": None}
    assert ending([rank(0), rank(1)], NODES, well, LIMITS) is None


def test_L50_a_container_that_restarts_ends_the_start_though_it_runs() -> None:
    problem = end([rank(0), RankState(2, "restarted", restarts=11)])
    assert problem.where == "rank 2 (spark3)"
    assert "restarted 11 times" in problem.seen


def test_a_rank_that_ended_is_named_with_its_code() -> None:
    problem = end([rank(0), rank(1, code=3)])
    assert (problem.where, problem.seen) == ("rank 1 (spark2)", "it ended: exit code 3")
    assert "left no exit record" in end([RankState(1, "absent")]).seen


def test_a_kill_for_memory_comes_before_the_exits_it_causes() -> None:
    problem = end([rank(0, code=1), rank(1, code=1), rank(3, code=137, out_of_memory=True)])
    assert problem.where == "rank 3 (spark4)"
    assert "OOMKilled" in problem.seen


def test_a_kill_inside_a_container_that_runs_on_ends_the_start() -> None:
    assert "OOMKilled" in end([rank(0), rank(1, out_of_memory=True)]).seen


def test_a_node_below_the_floor_ends_the_start_with_its_numbers() -> None:
    found = {"spark1": memory(), "spark4": memory(free=0.5, available=1.9)}
    problem = end([rank(0), rank(3, code=1)], found)
    assert problem.where == "spark4"
    assert problem.seen == "MemFree 0.5 GiB, MemAvailable 1.9 GiB of 128.0 GiB"
    assert problem.wanted == "MemAvailable of at least 2 GiB (startup.min_available_gib)"
    assert "engine.kv_tokens" in problem.fix


def test_the_floor_is_a_key_and_zero_is_off() -> None:
    found = {"spark1": memory(available=0.1)}
    assert ending([], NODES, found, Startup(min_available_gib=0.0)) is None
    more = {"spark1": memory(available=3)}
    assert ending([], NODES, more, Startup(min_available_gib=4.0)) is not None


def test_L43_little_free_memory_is_a_warning_with_the_way_out() -> None:
    found = read_meminfo(CACHED)
    assert found is not None
    assert ending([], NODES, {"spark1": found}, LIMITS) is None
    (warning,) = warnings({"spark1": found, "spark2": memory(), "spark3": None}, LIMITS)
    assert warning.where == "spark1"
    assert "MemFree 2.0 GiB, MemAvailable 117.0 GiB of 121.7 GiB" in warning.seen
    assert "drop_caches" in warning.fix
    assert not warnings({"spark1": found}, Startup(low_free_gib=0.0))


@pytest.mark.parametrize("text", ["", "cat: /proc/meminfo: Permission denied", "MemTotal: 1 kB\n"])
def test_a_text_that_is_no_meminfo_is_unknown(text: str) -> None:
    assert read_meminfo(text) is None


def test_L45_the_drivers_complaints_are_counted_before_and_after() -> None:
    assert count_no_memory(NVRM * 3 + "[ 82] NVRM: loading NVIDIA UNIX Open Kernel Module\n") == 3
    problem = driver_short("spark2", NVRM, NVRM * 4, BUDDY)
    assert problem is not None
    assert "3 more NVRM lines" in problem.seen
    assert "free blocks of 2 MiB and more: 5" in problem.seen
    assert driver_short("spark2", NVRM, NVRM, BUDDY) is None
    rolled_over = driver_short("spark2", NVRM * 4, NVRM, BUDDY)
    assert rolled_over is None


def test_L45_blocks_that_cannot_be_seen_are_unknown() -> None:
    assert large_blocks("") is None
    problem = driver_short("spark2", "", NVRM, "")
    assert problem is not None
    assert "unknown" in problem.seen


class Nodes:
    """Nodes that answer with this machine's own /proc/meminfo, but for one that is away."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def run(self, node: str, command: NodeCommand, on_line: OnLine | None = None) -> Result:
        assert command.argv == ("cat", "/proc/meminfo")
        self.asked.append(node)
        if node == "away":
            raise RunError(Problem(node, "no route", "an answer"))
        if node == "odd":
            return Result(1, "", "cat: no such file")
        return Result(0, Path("/proc/meminfo").read_text(), "")

    def copy(self, node: str, folder: Path, target: str, timeout: float) -> None:
        raise NotImplementedError

    def interrupt(self) -> None:
        raise NotImplementedError


def test_L67_memory_is_read_with_one_command_a_node_and_no_oftener_than_asked() -> None:
    nodes, now = Nodes(), [100.0]
    watch = MemoryWatch(nodes, ("here", "away", "odd"), 5, clock=lambda: now[0])
    assert watch.look()
    assert not watch.look()
    now[0] += 4.9
    assert not watch.look()
    assert sorted(nodes.asked) == ["away", "here", "odd"]
    here = watch.memory["here"]
    assert here is not None
    assert 0 < here.free <= here.total
    assert (watch.memory["away"], watch.memory["odd"]) == (None, None)
    now[0] += 0.2
    assert watch.look()
    assert len(nodes.asked) == 6


class Kernels(Nodes):
    """Nodes with a kernel log: one that grows, one that may not be read, one that stays."""

    def __init__(self) -> None:
        super().__init__()
        self.logs = {"grows": NVRM, "closed": NVRM, "stays": NVRM * 2}

    def run(self, node: str, command: NodeCommand, on_line: OnLine | None = None) -> Result:
        if command.argv == ("cat", "/proc/buddyinfo"):
            return Result(0, BUDDY, "")
        assert command.argv == ("dmesg",)
        if node == "closed":
            return Result(1, "", "dmesg: read kernel buffer failed: Operation not permitted")
        return Result(0, self.logs[node], "")


def test_L45_the_kernel_log_is_compared_where_it_may_be_read() -> None:
    nodes = Kernels()
    watch = DriverWatch(nodes, nodes.logs)
    assert watch.problems() == []
    nodes.logs = dict.fromkeys(nodes.logs, NVRM * 2)
    (problem,) = watch.problems()
    assert problem.where == "grows"
    assert "1 more NVRM lines" in problem.seen
    assert "more: 5" in problem.seen
