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
    file = tmp_path / "fabric.json"
    file.write_text(json.dumps(value))
    done = CliRunner().invoke(app, ["fabric", "show", "--from", str(file)])
    assert "a[bold]b" in done.stdout
    value["fabrics"]["spark1"]["functions"][0]["netdev"] = "evil\x1b[2J"
    file.write_text(json.dumps(value))
    done = CliRunner().invoke(app, ["fabric", "show", "--from", str(file)])
    assert isinstance(done.exception, UsageError)
    assert "'evil\\x1b[2J'" in done.exception.problems[0].seen


def test_a_fabric_that_nobody_looked_at_has_no_check_that_is_ok(tmp_path: Path) -> None:
    devices = dict.fromkeys(NAMES, example.DEVICES)
    unseen = dict.fromkeys(NAMES, "no route to host")
    found = Inventory("mine", "ring", NAMES, devices, {}, unseen)
    assert {one.verdict for one in found.checks} == {"unknown"}
    wire = next(one for one in found.checks if one.id == "CABLING.WIRE")
    assert wire.observed == "no node was looked at"
    done = CliRunner().invoke(app, ["fabric", "show", "--from", saved(tmp_path, found)])
    assert done.exit_code == 1 and "0 of" in done.stdout and "no route to host" in done.stdout


def test_one_node_that_was_not_looked_at_ends_with_1(tmp_path: Path) -> None:
    value = example.inventory().as_dict()
    del value["fabrics"]["spark2"]
    value["unseen"] = {"spark2": "no route to host"}
    file = tmp_path / "fabric.json"
    file.write_text(json.dumps(value))
    done = CliRunner().invoke(app, ["fabric", "show", "--from", str(file)])
    assert done.exit_code == 1 and "nothing of spark2: not looked at" in done.stdout
    assert f"tetraspark fabric show --from {file}" in done.stdout


def test_two_sources_are_refused() -> None:
    site = str(ROOT / "sites" / "four-sparks-ring.toml")
    words = ["fabric", "show", "--from", str(example.FILE), "--site", site]
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, UsageError)
    assert done.exception.problems[0].seen == "both --site and --from"


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
    assert isinstance(done.exception, UsageError) and "no folder" in str(done.exception)


def test_a_file_that_is_no_picture_is_not_written_over(tmp_path: Path) -> None:
    file = tmp_path / "site.toml"
    file.write_text("name = 1")
    words = ["fabric", "show", "--from", str(example.FILE), "--svg"]
    done = CliRunner().invoke(app, [*words, str(file), "--json"])
    assert isinstance(done.exception, UsageError) and file.read_text() == "name = 1"
    for _ in range(2):
        assert CliRunner().invoke(app, [*words, str(tmp_path / "a.svg")]).exit_code == 0
