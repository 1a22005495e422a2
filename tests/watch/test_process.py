"""The one watch of a line: held by a lock, started beside the line, ended by a stop."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.serving import COMMAND, eventually
from tests.watch.stood_in import NAME, StoodIn
from tetraspark.cli.line import open_line
from tetraspark.cli.serve import with_watch
from tetraspark.errors import RunError
from tetraspark.line.api import Answer
from tetraspark.line.serve import Served
from tetraspark.watch.process import START_SECONDS, WatchProcess
from tetraspark.watch.record import Page
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
    assert eventually(lambda: process.pid() is not None and '"state"' in log.read_text(), 60)
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
def test_a_port_that_is_taken_ends_a_watch_that_was_told_to_take_it(line: StoodIn) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused = tetraspark(line, "watch", "--port", port)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert f"127.0.0.1:{port}" in refused.stderr


@pytest.mark.usefixtures("env")
def test_a_port_of_the_site_that_is_taken_is_told_and_the_line_is_watched(
    line: StoodIn, tmp_path: Path
) -> None:
    process, free = WatchProcess(line.store.root), line.site.read_text()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line.site.write_text(free.replace("\nport = 0\n", f"\nport = {port}\n"))
        page = process.start(line.site, tmp_path / "watch.log")
        line.site.write_text(free)
        assert page.url is None and page.problem is not None
        assert page.problem.where == f"status page at 127.0.0.1:{port}"
        assert f"in use by pid {os.getpid()} (" in page.problem.seen
        assert f"watch.port = 0 in {line.site} takes a free one" in page.problem.fix
        assert f"\nno page: {page.problem}\n" in tetraspark(line, "status").stdout
        told = json.loads(tetraspark(line, "status", "--json").stdout)["watch"]["page"]
        assert told == {"url": None, "problem": page.problem.as_dict()}
        assert eventually(lambda: told_of(line.store.root)["state"] == "ready", 60)
    process.end()
    assert told_of(line.store.root)["page"] is None


@pytest.mark.usefixtures("env")
def test_serve_warns_of_a_page_that_there_is_not(
    line: StoodIn, capsys: pytest.CaptureFixture[str]
) -> None:
    run = line.store.latest()
    assert run is not None
    served = Served(run.id, "http://x/v1", "tiny", Answer("42", "stop", 3, 3), {})
    free = line.site.read_text()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line.site.write_text(free.replace("\nport = 0\n", f"\nport = {port}\n"))
        with open_line(line.site) as opened:
            told = with_watch(opened, served)
    line.site.write_text(free)
    assert WatchProcess(line.store.root).end(), "the line is watched all the same"
    assert told.page is None and told.page_problem is not None
    assert told.as_dict()["page_problem"] == told.page_problem.as_dict()
    warned = capsys.readouterr().err
    assert f"warning: status page at 127.0.0.1:{port}\n" in warned
    for text in (told.page_problem.seen, told.page_problem.wanted, told.page_problem.fix):
        assert text in warned
    with open_line(line.site) as opened:
        told = with_watch(opened, served)
    assert told.page is not None and told.page_problem is None
    assert WatchProcess(line.store.root).end()


@pytest.mark.usefixtures("env")
def test_serve_tells_a_watch_that_does_not_come_up(
    line: StoodIn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = line.store.latest()
    assert run is not None
    monkeypatch.setattr("tetraspark.watch.process.START_SECONDS", 0.0)
    with open_line(line.site) as opened:
        told = with_watch(opened, Served(run.id, "", "tiny", Answer("42", "stop", 3, 3), {}))
    WatchProcess(line.store.root).end()
    assert told.page_problem is not None and "has not come up" in told.page_problem.seen
    assert capsys.readouterr().err.count("has not come up") == 1


@pytest.mark.usefixtures("env")
def test_a_site_without_a_page_has_none(line: StoodIn, tmp_path: Path) -> None:
    process, text = WatchProcess(line.store.root), line.site.read_text()
    line.site.write_text(text.replace("\nport = 0\n", "\npage = false\n"))
    assert process.start(line.site, tmp_path / "watch.log") == Page()
    line.site.write_text(text)
    status = tetraspark(line, "status").stdout
    assert f"watch: process {process.pid()}" in status and "page" not in status
    process.end()


def test_a_watch_that_does_not_come_up_is_told(
    line: StoodIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tetraspark.watch.process.START_SECONDS", 0.0)
    with pytest.raises(RunError, match=r"has not come up in 0 s"):
        WatchProcess(line.store.root).start(tmp_path / "none.toml", tmp_path / "watch.log")


@pytest.mark.usefixtures("env")
def test_a_watch_that_ends_at_once_is_told_at_once_with_its_words(
    line: StoodIn, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("name = [")
    begun = time.monotonic()
    with pytest.raises(RunError) as caught:
        WatchProcess(line.store.root).start(broken, tmp_path / "watch.log")
    assert time.monotonic() - begun < START_SECONDS / 2
    (problem,) = caught.value.problems
    assert problem.seen.startswith(f"the watch has ended: error: {broken}:1:9 seen: ")
    assert f"`tetraspark watch --site {broken}`" in problem.fix


@pytest.mark.usefixtures("env")
def test_a_watch_in_the_background_says_lines_of_json_and_status_shows_it(
    line: StoodIn, tmp_path: Path
) -> None:
    pid = started(line, tmp_path / "watch.log")
    page, line_of_json, *_ = (tmp_path / "watch.log").read_text().splitlines()
    said = json.loads(line_of_json)
    assert (said["state"], said["reason"]) == ("ready", "every rank is up, the canary answered")
    told = json.loads(tetraspark(line, "status", "--json").stdout)["watch"]
    assert (told["pid"], told["state"], told["acts"]) == (pid, "ready", [])
    assert page == f"status page: {told['page']['url']}"
    health = httpx.get(told["page"]["url"] + "healthz", trust_env=False)
    assert (health.status_code, health.text[:6]) == (200, "ready:")
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
