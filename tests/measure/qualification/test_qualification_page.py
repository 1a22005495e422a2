"""docs/qualification.md, command by command; a start is left to the tests of served lines."""

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.measure.qualification.test_sequence import receipt_of
from tests.serving import ROOT
from tetraspark.cli.main import app
from tetraspark.measure.qualification.sequence import Ran, run_steps
from tetraspark.measure.qualification.step import steps_of
from tetraspark.site.load import load_site

PAGE = (ROOT / "docs" / "qualification.md").read_text()
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = [line for block in BLOCK.findall(PAGE) for line in block.splitlines()]
SITE = ROOT / "sites" / "local.toml"


def run(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch, *more: str) -> str:
    monkeypatch.chdir(folder)
    words = shlex.split(command.replace("sites/", f"{ROOT}/sites/"))
    result = CliRunner().invoke(
        app, [*words[1:], *more], env={"TETRASPARK_SITE": str(SITE), "COLUMNS": "250"}
    )
    assert result.exit_code == 0, result.output
    return result.output


def test_every_command_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, whole, check, fabric = COMMANDS
    shown = run(plan, tmp_path, monkeypatch)
    for name, command in re.findall(r"^\| `(\w+)` \| `(tetraspark [^`]+)`", PAGE, re.MULTILINE):
        if name != "lanes":
            assert re.search(rf"^ ?{name} +{command}", shown, re.MULTILINE), shown
    assert run(whole, tmp_path, monkeypatch, "--dry-run") == shown
    told = run(fabric, tmp_path, monkeypatch)
    assert told.count("qualify lanes --rank") == 4
    folder = tmp_path / "qualified"
    folder.mkdir()
    loaded = load_site(SITE)
    ran = Ran(0, 1.0, b"{}")
    outcomes = list(
        run_steps(
            steps_of(loaded.site, True, False),
            loaded.sha256,
            folder,
            lambda step: ran,
            lambda step: None,
        )
    )
    receipt_of(folder, outcomes)
    assert "the receipt is whole" in run(check, tmp_path, monkeypatch)
    assert json.loads((folder / "receipt.json").read_text())["passed"] is True


def test_the_page_names_every_step() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    assert rows == [step.name for step in steps_of(load_site(SITE).site, False, False)]
