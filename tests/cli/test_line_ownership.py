"""A line belongs to its site file; its live processes are not touched by another one's verbs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serving import Command, write_site
from tetraspark.fleet.local import LocalRunner
from tetraspark.fleet.process import labelled
from tetraspark.fleet.rank import RankCommand
from tetraspark.line.local_plan import local_plan
from tetraspark.line.run import RunStore
from tetraspark.site.load import load_site


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Command]:
    """A line of one process that is not an engine: only its ownership matters here."""
    (tmp_path / "one").mkdir()
    line = Command(write_site(tmp_path / "one", "owned"), tmp_path / "state")
    runner, loaded = LocalRunner(), load_site(line.site)
    run = RunStore("owned", tmp_path / "state").create(local_plan(loaded, runner.inventory(4)))
    runner.start([RankCommand(0, "node0", ("sleep", "300"), (), 0)], run.folder)
    yield line
    runner.stop(tmp_path / "state", 5.0)


def count(line: Command) -> int:
    return len(labelled(Path(line.env["TETRASPARK_STATE"])))


@pytest.mark.parametrize("words", [("stop",), ("serve", "--replace"), ("smoke",), ("status",)])
def test_another_site_of_the_same_name_is_refused(
    live: Command, tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "two").mkdir()
    other = Command(write_site(tmp_path / "two", "owned"), tmp_path / "state")
    result = other.run(*words)
    assert result.returncode == 2
    assert f"is being served from {live.site}" in result.stderr
    assert "tetraspark stop --line owned" in result.stderr
    assert count(live) == 2


def test_a_benchmark_refuses_a_served_line_and_leaves_it(live: Command) -> None:
    for verb in ("start", "transport"):
        result = live.run("bench", verb)
        assert result.returncode == 1
        assert "wanted: a line that is not being served" in result.stderr
        assert count(live) == 2


@pytest.mark.parametrize("text", ["no toml at all", None])
def test_stop_by_name_needs_no_site(live: Command, tmp_path: Path, text: str | None) -> None:
    live.site.write_text(text) if text else live.site.unlink()
    assert live.run("stop").returncode == 2
    assert count(live) == 2
    result = live.run("stop", "--line", "owned")
    assert (result.returncode, count(live)) == (0, 0)


@pytest.mark.parametrize("name", ["nobody", "../state/owned", ""])
def test_stop_by_a_name_nobody_serves(live: Command, name: str) -> None:
    result = live.run("stop", "--line", name)
    assert result.returncode == 2
    assert count(live) == 2
