"""Progress of the weights: a line now and then where there is no terminal, a table on one."""

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from tetraspark import weights
from tetraspark.cli import live, weights_progress
from tetraspark.cli.weights_progress import WeightsProgress, size_text
from tetraspark.weights.node_program import Progress


def shown(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> str:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=terminal, width=100)
    monkeypatch.setattr(live, "err", console)
    monkeypatch.setattr(weights_progress, "err", console)
    view = WeightsProgress()
    with view.shown():
        for done in (0, 500_000_000, 1_500_000_000):
            view.observe(Progress("spark2", "send", done, 3_000_000_000, "model-1\x1b[2J"))
        view.observe(Progress("spark2", "hash"))
    return screen.getvalue()


def test_without_a_terminal_a_phase_is_told_when_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(False, monkeypatch).splitlines()
    assert lines == ["sending to spark2: 0 B of 3.0 GB model-1\\x1b[2J", "hashing on spark2"]


def test_every_phase_that_a_node_can_be_in_has_words() -> None:
    told = set[str]()
    for file in Path(weights.__file__).parent.glob("*.py"):
        told.update(re.findall(r'Progress\([\w.]+, "(\w+)"', file.read_text()))
    assert told == weights_progress.PHASES.keys()


def test_on_a_terminal_the_latest_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(True, monkeypatch)
    assert "phase" in text and "hash" in text and "\x1b[2J" not in text


def test_sizes_are_read_in_thousands() -> None:
    sizes = [size_text(count) for count in (0, 999, 1000, 510_000_000_000, 2 * 10**12)]
    assert sizes == ["0 B", "999 B", "1.0 kB", "510.0 GB", "2.00 TB"]
