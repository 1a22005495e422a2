"""Locks that others can ask about without taking them, between real processes."""

import multiprocessing
import os
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from tetraspark.errors import RunError
from tetraspark.fleet import file_lock
from tetraspark.line.quiet import is_quiet, looking
from tetraspark.line.run import RunStore
from tetraspark.watch.process import WatchProcess

SPAWN = multiprocessing.get_context("spawn")
TIMES = 300


def ask_on_and_on(root: Path, ready: Event, done: Event) -> None:
    watch, store = WatchProcess(root), RunStore("line", root)
    ready.set()
    while not done.is_set():
        watch.pid(), store.is_locked(), is_quiet(root)


def hold(root: Path, ready: Event, done: Event) -> None:
    with WatchProcess(root).held():
        ready.set()
        done.wait(60)


def test_nobody_is_refused_because_others_ask(tmp_path: Path) -> None:
    """A watch that starts, a launcher and a look, while two processes only want to know."""
    done, events = SPAWN.Event(), [SPAWN.Event() for _ in range(2)]
    askers = [SPAWN.Process(target=ask_on_and_on, args=(tmp_path, one, done)) for one in events]
    for one in askers:
        one.start()
    try:
        assert all(one.wait(60) for one in events)
        for _ in range(TIMES):
            with (
                WatchProcess(tmp_path).held(),
                RunStore("line", tmp_path).lock(),
                looking(tmp_path) as may,
            ):
                assert may
    finally:
        done.set()
        for one in askers:
            one.join(60)
    assert [one.exitcode for one in askers] == [0, 0]


def test_a_watch_of_another_process_is_told_by_its_pid_until_it_is_killed(tmp_path: Path) -> None:
    ready, done = SPAWN.Event(), SPAWN.Event()
    other = SPAWN.Process(target=hold, args=(tmp_path, ready, done))
    other.start()
    assert ready.wait(60)
    watch = WatchProcess(tmp_path)
    assert watch.pid() == other.pid
    with pytest.raises(RunError, match=f"process {other.pid} watches"), watch.held():
        pass
    other.kill()
    other.join()
    assert watch.pid() is None
    with watch.held():
        assert watch.pid() == os.getpid()


@pytest.mark.parametrize("text", ["", "0", "-1", "1", "9" * 5000, "4194305", "x", "\x00"])
def test_a_lock_whose_file_names_no_process_names_none(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal to process 0 would be one to ourselves."""
    monkeypatch.setattr("tetraspark.watch.process.PID_SECONDS", 0.05)
    with (tmp_path / "watch.pid").open("a+") as file:
        file_lock.take(file)
        (tmp_path / "watch.pid").write_text(text)
        assert WatchProcess(tmp_path).pid() is None
        assert WatchProcess(tmp_path).end() is False


def test_how_a_file_is_held(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert file_lock.held(path) is None
    with path.open("a+") as first, path.open("a+") as second:
        file_lock.take(first, "shared")
        file_lock.take(second, "shared")
        assert file_lock.held(path) == "shared"
        with pytest.raises(BlockingIOError):
            file_lock.take(second, "alone")
    assert file_lock.held(path) is None
    with path.open("a+") as file:
        file_lock.take(file)
        assert file_lock.held(path) == "alone"
