"""What a person sees while nodes build."""

import io

import pytest
from rich.console import Console

from tetraspark.cli.build_view import BuildView
from tetraspark.images.build_log import Step
from tetraspark.images.node_build import Progress

STEP = Step(3, 12, "RUN pip [bold]install[/] :ring:")


def shown(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> str:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=120, emoji=False)
    for module in ("build_view", "live"):
        monkeypatch.setattr(f"tetraspark.cli.{module}.err", console)
    view = BuildView(["spark1", "spark2"])
    with view.shown():
        view.observe(Progress("spark1", "reach", text="docker version"))
        view.observe(Progress("spark1", "build", STEP))
        view.observe(Progress("spark1", "build", STEP, "Collecting torch"))
        view.observe(Progress("spark1", "build", STEP, "Installing torch"))
        view.observe(Progress("spark2", "copy", text="rsync 14 files"))
    return file.getvalue()


def test_elsewhere_than_on_a_terminal_each_phase_and_step_is_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert shown(monkeypatch, terminal=False).splitlines() == [
        "spark1 reach: docker version",
        "spark1 build: step 3/12: RUN pip [bold]install[/] :ring:",
        "spark2 copy: rsync 14 files",
    ]


def test_on_a_terminal_each_node_is_a_row_with_its_last_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = shown(monkeypatch, terminal=True)
    rows = [line.split() for line in text.splitlines()]
    assert ["spark1", "build", "3/12", "Installing", "torch"] in rows
    assert any(row[:2] == ["spark2", "copy"] for row in rows)
