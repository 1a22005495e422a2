"""Where processes stand: asked by their handler, read from the kernel, or left alone."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.serving import eventually
from tetraspark.bundle.collect import HERE
from tetraspark.engine.label import RANK, RUN_DIR
from tetraspark.fleet.program import ask
from tetraspark.fleet.this_machine import ThisMachine
from tetraspark.watch.stacks import Stack, places, read_stacks

PROGRAM = """
import time
from tetraspark.engine.stacks import write_stacks_on_signal
if {handles}:
    write_stacks_on_signal()
def waiting_for_a_peer():
    print("up", flush=True)
    while True:
        time.sleep(0.1)
waiting_for_a_peer()
"""


@contextmanager
def rank(run_dir: Path, number: int, handles: bool = True) -> Iterator[int]:
    """Run a process of a rank; gives its pid."""
    run_dir.mkdir(exist_ok=True)
    env = os.environ | {RUN_DIR: str(run_dir), RANK: str(number)}
    argv = [sys.executable, "-c", PROGRAM.format(handles=handles)]
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        try:
            yield process.pid
        finally:
            process.kill()


def stacks(run_dir: Path) -> list[Stack]:
    return read_stacks(ask(ThisMachine(), HERE, "stacks", {"run_dir": str(run_dir)}, 60))


def test_a_process_is_asked_and_goes_on(tmp_path: Path) -> None:
    with rank(tmp_path, 0) as pid:
        for _ in range(2):
            (found,) = stacks(tmp_path)
            assert (found.rank, found.pid, found.how) == (0, pid, "signal")
            assert found.place.endswith("waiting_for_a_peer (<string>:9) < <module> (<string>:10)")
        assert Path(f"/proc/{pid}").exists()


def test_a_process_without_the_handler_is_not_sent_the_signal_that_would_end_it(
    tmp_path: Path,
) -> None:
    with rank(tmp_path, 0, handles=False) as pid, rank(tmp_path / "other", 1):
        assert stacks(tmp_path) == []
        time.sleep(0.2)
        os.kill(pid, 0)


def test_a_stopped_process_is_named_by_the_kernel_and_not_continued(tmp_path: Path) -> None:
    with rank(tmp_path, 0), rank(tmp_path, 1) as pid:
        os.kill(pid, signal.SIGSTOP)
        stopped = Path(f"/proc/{pid}/stat")
        assert eventually(lambda: ") T " in stopped.read_text(), 10)
        first, second = stacks(tmp_path)
        assert (first.how, second.how) == ("signal", "kernel")
        found = places([first, second])
        assert "stopped (T (stopped)), kernel: " in found["1"]
        assert "waiting_for_a_peer" in found["0"]
        assert ") T " in stopped.read_text()


def test_where_a_scheduler_stands_comes_before_its_parent() -> None:
    frame = '  File "/x/tetraspark/collectives/group.py", line 99 in all_reduce\n'
    parent = Stack(0, 1, "python", "S (sleeping)", "signal", "Current thread\n")
    text = f'Thread 1\n  File "a/b.py", line 1 in f\nCurrent thread 2\n{frame}'
    scheduler = Stack(0, 2, "sglang::scheduler_TP0", "R (running)", "signal", text)
    assert places([parent, scheduler]) == {"0": "sglang::scheduler_TP0: all_reduce (group.py:99)"}


def test_what_py_spy_prints_is_understood() -> None:
    text = (
        "Process 7: sglang::scheduler_TP1\nPython v3.12 (/usr/bin/python3)\n\n"
        'Thread 7 (idle): "MainThread"\n    wait (tetraspark/collectives/calls.py:50)\n'
        "    all_reduce (tetraspark/collectives/group.py:99)\n"
    )
    spied = Stack(1, 7, "sglang::scheduler_TP1", "S (sleeping)", "py-spy", text)
    assert spied.place == ("sglang::scheduler_TP1: wait (calls.py:50) < all_reduce (group.py:99)")
