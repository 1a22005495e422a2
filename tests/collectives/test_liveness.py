"""Running, stopped or gone, from the text of /proc and from real processes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tetraspark.collectives.liveness import (
    Life,
    Process,
    judge,
    life_of,
    namespace,
    parse_stat,
    read_stat,
    this_process,
)

STAT = (
    "4242 (a ) b (c)) {state} 1 4242 4242 0 -1 4194560 111 0 0 0 1 2 0 0 20 0 1 0 987654 "
    "2265088 214 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0"
)


def test_a_name_with_brackets_and_spaces_is_no_trap() -> None:
    assert parse_stat(STAT.format(state="S")) == ("S", 987654)


@pytest.mark.parametrize(
    ("state", "life"),
    [("R", Life.RUNNING), ("S", Life.RUNNING), ("D", Life.RUNNING), ("T", Life.STOPPED),
     ("t", Life.STOPPED), ("Z", Life.DEAD), ("X", Life.DEAD)],
)  # fmt: skip
def test_states(state: str, life: Life) -> None:
    assert judge(STAT.format(state=state), 987654) is life


def test_a_reused_pid_is_a_dead_process() -> None:
    assert judge(STAT.format(state="R"), 987653) is Life.DEAD
    assert judge(None, 1) is Life.DEAD


@pytest.mark.parametrize("text", ["", "no brackets at all", "1 (x) S 1"])
def test_what_is_no_status_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a process status"):
        parse_stat(text)


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        yield process
        process.kill()


def test_a_real_process_through_its_life(child: subprocess.Popen[bytes]) -> None:
    stat = read_stat(child.pid)
    assert stat is not None
    process = Process(child.pid, parse_stat(stat)[1], namespace())
    assert life_of(process, namespace()) is Life.RUNNING
    os.kill(child.pid, signal.SIGSTOP)
    until(process, Life.STOPPED)
    os.kill(child.pid, signal.SIGKILL)
    until(process, Life.DEAD)
    child.wait()
    assert life_of(process, namespace()) is Life.DEAD


def until(process: Process, life: Life) -> None:
    end = time.monotonic() + 10
    while life_of(process, namespace()) is not life:
        assert time.monotonic() < end, f"never {life}"
        time.sleep(0.005)


def test_another_namespace_cannot_be_judged() -> None:
    own = this_process()
    assert life_of(own, own.namespace) is Life.RUNNING
    assert life_of(own, "elsewhere") is Life.UNKNOWN
