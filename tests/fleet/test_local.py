"""The local runner with real processes: sessions, labels, exit records, stop."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tetraspark.fleet.local import LocalRunner
from tetraspark.fleet.process import labelled
from tetraspark.fleet.rank import RankCommand, RankState
from tetraspark.fleet.run_files import log_path, read_log

RUNNER = LocalRunner()


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    RUNNER.stop(tmp_path, 0.0)


def start(root: Path, script: str, rank: int = 0, **env: str) -> Path:
    run_dir = root / "run"
    run_dir.mkdir(exist_ok=True)
    command = RankCommand(rank, f"node{rank}", ("/bin/sh", "-c", script), tuple(env.items()), 0)
    RUNNER.start([command], run_dir)
    return run_dir


def eventually(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


def state(run_dir: Path, rank: int = 0) -> RankState:
    return RUNNER.inspect(run_dir, ["node"] * (rank + 1))[rank]


def test_a_rank_runs_in_a_session_of_its_own_and_logs(root: Path) -> None:
    run_dir = start(root, "echo hello; exec sleep 60")
    assert eventually(lambda: read_log(run_dir, 0, 0) == b"hello\n")
    assert state(run_dir).state == "running"
    sessions = {process.session for process in labelled(root)}
    assert len(sessions) == 1
    assert os.getsid(0) not in sessions
    assert read_log(run_dir, 0, 3) == b"lo\n"


@pytest.mark.parametrize(
    ("script", "code", "text"),
    [
        ("exit 3", 3, "exit code 3"),
        ("kill -9 $$", 137, "killed by signal 9"),
        ("exit 0", 0, "exit code 0"),
    ],
)
def test_how_a_rank_ended_is_recorded(root: Path, script: str, code: int, text: str) -> None:
    run_dir = start(root, script)
    assert eventually(lambda: state(run_dir).state == "exited")
    ended = state(run_dir).exit
    assert ended is not None
    assert (ended.code, str(ended)) == (code, text)
    assert abs(ended.at - time.time()) < 60


def test_a_rank_that_was_never_started_is_absent(root: Path) -> None:
    run_dir = start(root, "exec sleep 60", rank=1)
    assert eventually(lambda: state(run_dir, 1).state == "running")
    assert RUNNER.inspect(run_dir, ["node0", "node1"])[0].state == "absent"


def test_a_stopped_process_is_frozen(root: Path) -> None:
    run_dir = start(root, "exec sleep 60")
    assert eventually(lambda: len(state(run_dir).pids) == 2)
    engine = next(process for process in labelled(root) if not process.leads)
    os.kill(engine.pid, signal.SIGSTOP)
    assert eventually(lambda: state(run_dir).state == "frozen")


def test_only_named_variables_of_the_caller_reach_a_rank(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SGLANG_SOMETHING", "leaked")
    monkeypatch.setenv("NCCL_ALGO", "Tree")
    run_dir = start(root, "env; echo end", PLANNED="yes")
    assert eventually(lambda: b"end\n" in read_log(run_dir, 0, 0))
    text = read_log(run_dir, 0, 0).decode()
    assert "PLANNED=yes" in text
    assert "leaked" not in text
    assert "NCCL_ALGO" not in text


def test_argv_reaches_the_rank_word_by_word(root: Path) -> None:
    run_dir = root / "run"
    run_dir.mkdir()
    words = ('{"a":1,"b":2}', "a b", "$HOME", "'q'", "*")
    argv = ("/usr/bin/printf", r"%s\n", *words)
    RUNNER.start([RankCommand(0, "node0", argv, (), 0)], run_dir)
    assert eventually(lambda: state(run_dir).state == "exited")
    assert log_path(run_dir, 0).read_text().splitlines() == list(words)


def test_stop_asks_first_and_the_engine_may_say_goodbye(root: Path) -> None:
    run_dir = start(root, 'trap "echo bye; exit 0" TERM; echo up; while :; do sleep 0.1; done')
    assert eventually(lambda: b"up" in read_log(run_dir, 0, 0))
    stopped = RUNNER.stop(root, 5.0)
    assert len(stopped.asked) == 1
    assert stopped.killed == ()
    assert b"bye" in read_log(run_dir, 0, 0)
    assert labelled(root) == []


def test_stop_kills_what_does_not_go_and_grandchildren_in_other_sessions(root: Path) -> None:
    script = 'trap "" TERM; setsid sleep 300 & echo up; while :; do sleep 0.1; done'
    run_dir = start(root, script)
    assert eventually(lambda: b"up" in read_log(run_dir, 0, 0))
    assert eventually(lambda: len({process.session for process in labelled(root)}) == 2)
    stopped = RUNNER.stop(root, 0.5)
    assert len(stopped.killed) >= 3
    assert labelled(root) == []


def test_stop_wakes_a_frozen_rank(root: Path) -> None:
    run_dir = start(root, "exec sleep 60")
    assert eventually(lambda: len(state(run_dir).pids) == 2)
    engine = next(process for process in labelled(root) if not process.leads)
    # Until then it has the traps of the shell it was forked from, which swallow a signal.
    assert eventually(lambda: Path(f"/proc/{engine.pid}/comm").read_text() == "sleep\n")
    os.kill(engine.pid, signal.SIGSTOP)
    assert RUNNER.stop(root, 5.0).killed == ()


def test_stop_ends_those_processes_and_no_others(root: Path, tmp_path: Path) -> None:
    other = tmp_path.parent / f"{tmp_path.name}-other"
    other.mkdir()
    start(root, "exec sleep 60")
    start(other, "exec sleep 60")
    with subprocess.Popen(["sleep", "60"]) as bystander:
        try:
            RUNNER.stop(root, 5.0)
            assert labelled(root) == []
            assert len(labelled(other)) == 2
            assert bystander.poll() is None
        finally:
            bystander.kill()
            RUNNER.stop(other, 5.0)


def test_stop_finds_ranks_whose_supervisor_was_killed(root: Path) -> None:
    start(root, 'trap "exit 0" TERM; while :; do sleep 0.1; done')
    assert eventually(lambda: len(labelled(root)) >= 2)
    leader = next(process for process in labelled(root) if process.leads)
    os.kill(leader.pid, signal.SIGKILL)
    assert eventually(lambda: all(not process.leads for process in labelled(root)))
    stopped = RUNNER.stop(root, 5.0)
    assert len(stopped.asked) >= 1
    assert labelled(root) == []


def test_stop_removes_shared_memory_of_killed_ranks_and_what_was_recorded(root: Path) -> None:
    code = (
        "import os, time; from multiprocessing import shared_memory as s, resource_tracker as r;"
        "m = s.SharedMemory(create=True, size=64); r.unregister('/' + m.name, 'shared_memory');"
        "print(m.name, flush=True); time.sleep(60)"
    )
    run_dir = root / "run"
    run_dir.mkdir()
    RUNNER.start([RankCommand(0, "node0", ("python3", "-c", code), (), 0)], run_dir)
    assert eventually(lambda: read_log(run_dir, 0, 0).endswith(b"\n"))
    mapped = Path("/dev/shm") / read_log(run_dir, 0, 0).decode().strip()
    recorded = Path("/dev/shm") / f"tetraspark-test-{os.getpid()}"
    recorded.touch()
    assert mapped.exists()
    stopped = RUNNER.stop(root, 0.1, [recorded])
    assert stopped.removed == tuple(sorted([str(mapped), str(recorded)]))
    assert not mapped.exists()
    assert not recorded.exists()


def test_the_inventory_names_distinct_free_ports() -> None:
    inventory = RUNNER.inventory(4)
    assert len(set(inventory.ports)) == 5
    assert inventory.engine == "0.5.23"
    assert set(inventory.cpus) == os.sched_getaffinity(0)
