"""`fabric show` and `fabric prove`: what they refuse, and how they end."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.fabric import example
from tests.fabric.model import NAMES
from tests.fabric.sparks import ring
from tests.serving import ROOT
from tetraspark.cli.main import app
from tetraspark.errors import UsageError
from tetraspark.fabric.inventory_file import Inventory


def saved(folder: Path, found: Inventory) -> str:
    path = folder / "fabric.json"
    path.write_text(json.dumps(found.as_dict()))
    return str(path)


def test_a_failed_check_is_printed_and_ends_with_1(tmp_path: Path) -> None:
    sparks = ring()
    sparks.swap(("spark2", 1), ("spark4", 1))
    devices = dict.fromkeys(NAMES, example.DEVICES)
    fabrics = {name: sparks.fabric(name) for name in NAMES}
    file = saved(tmp_path, Inventory("mine", "ring", NAMES, devices, fabrics, {}))
    done = CliRunner().invoke(app, ["fabric", "show", "--from", file])
    assert done.exit_code == 1
    assert "failed CABLING.SUBNETS" in done.stdout
    assert "swap the plugs in spark2 port 1 and spark4 port 1" in done.stdout
    done = CliRunner().invoke(app, ["fabric", "show", "--from", file, "--json"])
    assert done.exit_code == 1 and json.loads(done.stdout)["cabling"]["shape"] == "mixed"


def test_what_a_node_calls_itself_cannot_command_the_terminal(tmp_path: Path) -> None:
    value = example.inventory().as_dict()
    value["line"] = "a[bold]b"
    value["fabrics"]["spark1"]["functions"][0]["netdev"] = "evil\x1b[2J"
    file = tmp_path / "fabric.json"
    file.write_text(json.dumps(value))
    done = CliRunner().invoke(app, ["fabric", "show", "--from", str(file)])
    assert "\x1b[2J" not in done.stdout and "evil\\x1b[2J" in done.stdout
    assert "a[bold]b" in done.stdout


@pytest.mark.parametrize("verb", ["show", "prove"])
def test_a_site_without_a_fabric_is_refused(verb: str) -> None:
    site = str(ROOT / "sites" / "local.toml")
    done = CliRunner().invoke(app, ["fabric", verb, "--site", site])
    assert isinstance(done.exception, UsageError)
    (problem,) = done.exception.problems
    assert problem.seen == 'kind = "local", without [fabric]' and "--from FILE" in problem.fix


def test_a_picture_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    words = ["fabric", "show", "--from", str(example.FILE), "--svg", str(tmp_path / "no" / "a.svg")]
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, OSError)
