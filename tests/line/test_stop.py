"""Stop, with real processes of no engine: damaged records, foreign names, full disks, starts."""

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.serving import COMMAND, eventually
from tests.watch.stood_in import NAME, StoodIn
from tetraspark.errors import RunError
from tetraspark.fleet.process import labelled
from tetraspark.line.run import Run

SHM = Path("/dev/shm")
FULL = "import resource, os, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); "
EXEC = "os.execv(sys.argv[1], sys.argv[1:])"


@pytest.fixture
def line(tmp_path: Path) -> StoodIn:
    return StoodIn(tmp_path)


def verb(
    line: StoodIn, *words: str, full: bool = False, site: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run the command; `full` lets it write nothing to any file."""
    argv = [str(COMMAND), *words, *(("--site", str(line.site)) if site else ())]
    if full:
        argv = [sys.executable, "-c", FULL + EXEC, *argv]
    env = os.environ | {"TETRASPARK_STATE": str(line.state), "COLUMNS": "400"}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr
    return done


def latest(line: StoodIn) -> Run:
    run = line.store.latest()
    assert run is not None
    return run


def test_a_line_whose_only_plan_is_damaged_is_ended_by_its_name(line: StoodIn) -> None:
    with line.served():
        plan, text = latest(line).folder / "plan.json", "[" * 100_000
        plan.write_text(text)
        done = verb(line, "stop", "--line", NAME, site=False)
        assert (done.returncode, labelled(line.store.root)) == (0, [])
        assert f"{plan}" in done.stderr and "damaged" in done.stderr
        assert f"line {NAME}: stopped 2 ranks" in done.stdout
        assert plan.read_text() == text
    again = verb(line, "stop", "--line", NAME, site=False)
    assert again.returncode == 1, "whether it had nodes is not known"
    assert f"docker ps --all --filter label=tetraspark.line={NAME}" in again.stderr


def test_an_older_plan_stands_in_for_a_damaged_one(line: StoodIn) -> None:
    with line.served() as first:
        pass
    with line.served():
        pass
    (latest(line).folder / "plan.json").write_text("{")
    done = verb(line, "stop", "--line", NAME, site=False)
    assert (done.returncode, done.stdout) == (0, f"line {NAME}: nothing was running\n")
    assert f"as run {first} had them" in done.stderr


def test_only_lines_are_listed_among_the_lines(line: StoodIn) -> None:
    with line.served():
        pass
    for name in ("_thresholds", "receipts", "empty/20260101-000000-000000"):
        (line.state / name).mkdir(parents=True)
    (line.state / "_thresholds" / "x.json").write_text("{}")
    done = verb(line, "stop", "--line", "nosuch", site=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].split() == ["wanted:", "one", "of:", NAME]


@pytest.fixture
def decoys(tmp_path: Path) -> Iterator[dict[str, Path]]:
    """Files that a tampered record names: none of them is the run's."""
    target = tmp_path / "target"
    target.write_text("kept")
    made = {
        "outside": target,
        "climbs": SHM / "../.." / str(target).lstrip("/"),
        "of another": SHM / f"somebody-elses-{os.getpid()}",
        "a link": SHM / f"psm_{os.getpid():x}aaaa"[-25:],
        "older": SHM / f"torch_{os.getpid()}_1_2",
        "a folder": SHM / f"sgl_shm_folder_{os.getpid()}",
    }
    made["of another"].write_text("kept")
    made["a link"].symlink_to(target)
    made["a folder"].mkdir()
    made["older"].write_text("kept")
    yield made
    for name in ("of another", "a link", "older"):
        made[name].unlink(missing_ok=True)
    made["a folder"].rmdir()


def test_only_what_a_run_can_have_made_is_removed(line: StoodIn, decoys: dict[str, Path]) -> None:
    with line.served():
        pass
    # As if it had been made an hour later: what was there before is not its own.
    run = latest(line)
    later = run.folder.with_name(time.strftime("%Y%m%d-%H%M%S-0", time.gmtime(time.time() + 3600)))
    run.folder.rename(later)
    names = [str(path) for path in decoys.values()]
    Run(later).record(shared_memory=[*names, "/dev/shm/", "", "/dev/shm/psm_0\x00", "psm_12345678"])
    done = verb(line, "stop", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["removed"] == []
    seen = " ".join(one["seen"] for one in told["warnings"])
    assert len(told["warnings"]) == len(names) + 4
    assert {one["where"] for one in told["warnings"]} == {str(later / "state.json")}
    for why in ("older than the run", "no regular file", "no name that a run's processes give"):
        assert why in seen
    for name, path in decoys.items():
        assert path.is_symlink() or path.exists(), name


def test_what_a_killed_run_left_is_removed(line: StoodIn) -> None:
    with line.served():
        left = [SHM / f"psm_{os.getpid():08x}", SHM / f"sem.mp-{os.getpid():08d}"]
        for path in left:
            path.touch()
        latest(line).record(shared_memory=[str(path) for path in left])
    done = verb(line, "stop")
    assert (done.returncode, done.stdout) == (
        0,
        f"line {NAME}: nothing was running; removed 2 files it left in /dev/shm\n",
    )
    assert not any(path.exists() for path in left)


def test_a_full_disk_keeps_no_rank_alive(line: StoodIn) -> None:
    with line.served():
        done = verb(line, "stop", full=True)
        assert (done.returncode, labelled(line.store.root)) == (0, []), done.stderr
        assert "not recorded that the run was stopped: File too large" in done.stderr
        assert latest(line).read()["phase"] == "ready"
        assert not list(latest(line).folder.glob("*.part"))


def test_a_start_that_fails_on_a_full_disk_says_why_it_failed(line: StoodIn) -> None:
    line.behave(hang="Load weight begin")
    caught: list[RunError] = []

    def serve() -> None:
        try:
            with line.served():
                pass
        except RunError as error:
            caught.append(error)

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    thread = threading.Thread(target=serve)
    thread.start()
    assert eventually(lambda: len(labelled(line.store.root)) >= 4, 20)
    assert eventually(lambda: latest(line).read()["phase"] == "load", 20), "the last it records"
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        line.signal(1, signal.SIGKILL)
        thread.join(30)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not thread.is_alive() and labelled(line.store.root) == []
    (error,) = caught
    assert error.problems[0].where == "rank 1 (node1)"
    assert any("not recorded why the start failed" in one.seen for one in error.problems)


def started(line: StoodIn) -> tuple[threading.Thread, list[Any]]:
    """Serve in the background; gives what came of it."""
    found: list[Any] = []

    def serve() -> None:
        try:
            with line.served() as run:
                found.append(run)
        except RunError as error:
            found.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    return thread, found


def test_a_start_that_is_stopped_while_it_loads(line: StoodIn) -> None:
    line.behave(hang="Load weight begin")
    thread, found = started(line)
    assert eventually(lambda: len(labelled(line.store.root)) >= 4, 20)
    done = verb(line, "stop")
    thread.join(30)
    assert (done.returncode, labelled(line.store.root)) == (0, [])
    assert f"line {NAME}: stopped 2 ranks" in done.stdout
    (problem,) = found[0].problems
    assert problem.seen == "another command stopped this start"
    told = json.loads(verb(line, "status", "--json").stdout)
    assert (told["verdict"], told["phase"]) == ("down", "failed")
    assert "another command stopped this start" in told["reason"]


@pytest.mark.parametrize("at", ["before its ranks", "between its ranks"])
def test_a_start_that_is_stopped_before_all_its_ranks_are_there(
    line: StoodIn, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The launcher holds the lock of the line: it looks at nodes, or asks their Docker."""
    reached, go_on = threading.Event(), threading.Event()
    start, calls = line.runner.start, []

    def slow(commands: Any, run_dir: Path, key: str | None = None) -> None:
        calls.append([command.rank for command in commands])
        if at == "between its ranks":
            start(commands, run_dir, key)
        reached.set()
        assert go_on.wait(60)
        if at == "before its ranks":
            start(commands, run_dir, key)

    monkeypatch.setattr(line.runner, "start", slow)
    thread, found = started(line)
    assert reached.wait(20)
    with subprocess.Popen(
        [str(COMMAND), "stop", "--site", str(line.site)],
        env=os.environ | {"TETRASPARK_STATE": str(line.state)},
        stdout=subprocess.PIPE,
        text=True,
    ) as stopping:
        assert eventually(latest(line).is_stopped, 20)
        go_on.set()
        text = stopping.communicate(timeout=60)[0]
    thread.join(30)
    assert (stopping.returncode, labelled(line.store.root)) == (0, [])
    assert "stopped" in text or "ended a start that was under way" in text
    assert calls == [[1]], "the head was not started any more"
    (problem,) = found[0].problems
    assert problem.seen == "another command stopped this start"
