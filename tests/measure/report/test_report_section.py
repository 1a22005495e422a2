"""The command of docs/measurement.md that makes a page, as it is written there."""

import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.measure.report import reports
from tests.measure.report.html import Page
from tests.serving import ROOT
from tetraspark.cli.main import app


def test_the_command_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "measurement.md").read_text()
    (command,) = [line for line in text.splitlines() if line.startswith("tetraspark report")]
    both = {"decode": reports.decode(), "prefill": reports.prefill()}
    reports.write(tmp_path, both)
    slower = {"decode": reports.decode(0.9), "prefill": reports.prefill(0.9)}
    reports.write(tmp_path / "before", slower)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, shlex.split(command)[1:])
    assert result.exit_code == 0, result.output
    assert "1.111" in Page((tmp_path / "report.html").read_text()).words
