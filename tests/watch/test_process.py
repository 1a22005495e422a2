"""The one watch of a line: held by a lock, started beside the line, ended by a stop."""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serving import COMMAND, eventually
from tests.watch.stood_in import NAME, StoodIn
from tetraspark.errors import RunError
from tetraspark.watch.process import WatchProcess
from tetraspark.watch.told import told_of


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoodIn]:
    made = StoodIn(tmp_path_factory.mktemp("line"))
    with made.served():
        yield made
        WatchProcess(made.store.root).end()


@pytest.fixture
def env(line: StoodIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TETRASPARK_STATE", str(line.state))


def tetraspark(line: StoodIn, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [str(COMMAND), verb, "--site", str(line.site), *words]
    return subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)


def started(line: StoodIn, log: Path) -> int:
    """Start a watch in the background and wait until it has said something."""
    process = WatchProcess(line.store.root)
    process.start(line.site, log)
    assert eventually(lambda: process.pid() is not None and log.read_text() != "", 60)
    pid = process.pid()
    assert pid is not None
    return pid


def test_two_watches_are_one_too_many(tmp_path: Path) -> None:
    process = WatchProcess(tmp_path)
    assert (process.pid(), process.end()) == (None, False)
    with process.held():
        assert process.pid() == os.getpid()
        with pytest.raises(RunError, match=f"process {os.getpid()} watches"), process.held():
            pass
        assert process.pid() == os.getpid()
    assert process.pid() is None


@pytest.mark.usefixtures("env")
def test_once_looks_and_leaves_no_trace(line: StoodIn) -> None:
    before = sorted(line.store.root.iterdir())
    result = tetraspark(line, "watch", "--once")
    assert result.returncode == 0, result.stderr
    assert f"line {NAME}: ready - every rank is up" in result.stdout
    assert sorted(line.store.root.iterdir()) == before


@pytest.mark.usefixtures("env")
def test_a_port_that_is_taken_ends_no_watch_in_the_background(line: StoodIn) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = ("--port", str(taken.getsockname()[1]))
        refused = tetraspark(line, "watch", *words)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert f"127.0.0.1:{words[1]}" in refused.stderr
        argv = [str(COMMAND), "watch", "--site", str(line.site), "--until-stopped", *words]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as goes_on:
            assert goes_on.stdout is not None
            assert json.loads(goes_on.stdout.readline())["state"] == "ready"
            goes_on.terminate()
            assert words[1].encode() in goes_on.communicate(timeout=300)[1]


@pytest.mark.usefixtures("env")
def test_a_watch_in_the_background_says_lines_of_json_and_status_shows_it(
    line: StoodIn, tmp_path: Path
) -> None:
    pid = started(line, tmp_path / "watch.log")
    said = json.loads((tmp_path / "watch.log").read_text().splitlines()[0])
    assert (said["state"], said["reason"]) == ("ready", "every rank is up, the canary answered")
    told = json.loads(tetraspark(line, "status", "--json").stdout)["watch"]
    assert (told["pid"], told["state"], told["acts"]) == (pid, "ready", [])
    again = tetraspark(line, "watch")
    assert again.returncode == 1
    assert f"process {pid} watches this line" in again.stderr


@pytest.mark.usefixtures("env")
def test_a_new_watch_takes_the_place_of_the_old_one_and_stop_ends_it(
    line: StoodIn, tmp_path: Path
) -> None:
    """The last to use the line. A watch that was killed leaves no lock."""
    process = WatchProcess(line.store.root)
    first = process.pid()
    assert first is not None
    second = started(line, tmp_path / "watch.log")
    assert eventually(lambda: not Path(f"/proc/{first}").exists(), 20)
    os.kill(second, signal.SIGKILL)
    assert eventually(lambda: process.pid() is None, 10)
    assert told_of(line.store.root)["state"] == "ready", "what it said last"
    third = started(line, tmp_path / "third.log")
    assert tetraspark(line, "stop").returncode == 0
    assert process.pid() is None
    assert eventually(lambda: not Path(f"/proc/{third}").exists(), 20)
    assert "watch: none" in tetraspark(line, "status").stdout
