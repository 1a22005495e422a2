"""`tetraspark ring plan` and `simulate`: what they print, write and refuse."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.ring.mutations import MUTATIONS
from tests.ring.sparks import sparks
from tetraspark.cli.main import run as tetraspark_command
from tetraspark.fabric.inventory_file import Inventory
from tetraspark.ring.build import ring_plan
from tetraspark.ring.plan import read_plan

DEVICES = ("rocep1s0f0", "rocep1s0f1", "roceP2p1s0f0", "roceP2p1s0f1")
ROOT = Path(__file__).parents[2]


class Printed(NamedTuple):
    """Both streams of a command."""

    stdout: str
    stderr: str


Run = Callable[..., Printed]


def inventory(**values: object) -> Inventory:
    fabrics = {one.node: one for one in sparks()}
    devices = dict.fromkeys(fabrics, DEVICES)
    made = Inventory("four", "ring", tuple(fabrics), devices, fabrics, {})
    return replace(made, **values)  # type: ignore[arg-type]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command in a folder with a saved inventory; return what it printed."""
    monkeypatch.chdir(tmp_path)
    # The command may take SIGTERM for itself, in a process of its own.
    monkeypatch.setattr("signal.signal", lambda *_: None)

    def ran(*argv: str, rc: int = 0, **values: object) -> Printed:
        Path("fabric.json").write_text(json.dumps(inventory(**values).as_dict()))
        monkeypatch.setattr(sys, "argv", ["tetraspark", "ring", *argv])
        with pytest.raises(SystemExit) as ended:
            tetraspark_command()
        printed = capsys.readouterr()
        assert (ended.value.code or 0) == rc, printed
        return Printed(printed.out, printed.err)

    return ran


def test_a_plan_is_printed_and_written(run: Run, tmp_path: Path) -> None:
    text = run("plan", "--from", "fabric.json", "--out", "ring.json").stdout
    plan = read_plan(tmp_path / "ring.json")
    assert plan == ring_plan(sparks())
    assert "spark0 [0--1] spark1 [0--1] spark2 [0--1] spark3 [0--1] (spark0)" in text
    assert "24 paths, 8 of them relayed" in text
    assert f"plan {plan.id}" in text and "written: ring.json" in text


def test_json_holds_the_plan_and_what_each_loss_leaves(run: Run) -> None:
    found = json.loads(run("plan", "--from", "fabric.json", "--json").stdout)
    assert found["plan"]["id"] == ring_plan(sparks()).id
    assert len(found["degraded"]) == 12
    assert found["degraded"][0]["share_both_ways"] == 0.5


def test_json_of_a_plan_that_cannot_be_written_is_one_document(run: Run, tmp_path: Path) -> None:
    letter = tmp_path / "letter.txt"
    letter.write_text("dear")
    for place in ("none/ring.json", "letter.txt"):
        done = run("plan", "--from", "fabric.json", "--json", "--out", place, rc=2)
        assert json.loads(done.stdout)["ok"] is False and "another --out" in done.stderr
    assert letter.read_text() == "dear"
    for _ in range(2):
        run("plan", "--from", "fabric.json", "--out", "ring.json")


def test_a_fix_names_the_inventory_and_the_verb_that_sets_queues(run: Run) -> None:
    words = ["plan", "--from", "fabric.json", "--lost-function", "spark2:none"]
    assert "tetraspark fabric show --from fabric.json" in run(*words, rc=2).stderr
    example = ROOT / "sites" / "four-sparks-ring.fabric.json"
    warned = run("plan", "--from", str(example)).stderr
    assert "tetraspark ring apply PLAN --hairpin" in warned and "line stopped" in warned


def test_degraded_plans_are_written_and_can_be_simulated(run: Run, tmp_path: Path) -> None:
    run("plan", "--from", "fabric.json", "--degraded", "lost")
    names = sorted(file.name for file in (tmp_path / "lost").iterdir())
    assert len(names) == 12 and names[0] == "cable-0.json"
    assert "function-spark3-enP2p1s0f0np0.json" in names
    text = run("simulate", "lost/cable-3.json").stdout
    assert "spark0 > spark1 > spark2 > spark3" in text and "24 of 24 paths delivered" in text


@pytest.mark.parametrize(
    ("option", "value", "lost"),
    [
        ("--lost-cable", "1", "cable 1"),
        ("--lost-function", "spark2:rocep1s0f0", "function spark2:enp1s0f0np0"),
        ("--lost-function", "spark2:enp1s0f0np0", "function spark2:enp1s0f0np0"),
    ],
)
def test_a_plan_around_a_loss(run: Run, option: str, value: str, lost: str) -> None:
    found = json.loads(run("plan", "--from", "fabric.json", option, value, "--json").stdout)
    assert found["plan"]["lost"] == lost and found["degraded"] == []


def test_simulate_says_where_a_frame_is_lost(run: Run, tmp_path: Path) -> None:
    mutation = next(one for one in MUTATIONS if one.name == "rule missing")
    (tmp_path / "bad.json").write_text(mutation.change(ring_plan(sparks())).text())
    done = run("simulate", "bad.json", rc=1)
    assert "rank 1 enp1s0f1np1: no rule for tag 0x88b5" in done.stdout
    assert "23 of 24 paths delivered" in done.stdout
    found = json.loads(run("simulate", "bad.json", "--json", rc=1).stdout)
    assert found["lost"] == 1 and len(found["walks"]) == 24 and len(found["load"]) == 16


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["plan", "--from", "fabric.json", "--base", "10.10.0.0/33"], "--base"),
        (["plan", "--from", "fabric.json", "--lost-function", "spark1"], "NODE:DEVICE"),
        (
            ["plan", "--from", "fabric.json", "--lost-cable", "1", "--lost-function", "a:b"],
            "one loss in a plan",
        ),
        (["plan", "--from", "fabric.json", "--lost-cable", "9"], "a cable of 0 to 3"),
        (["simulate", "none.json"], "no such file"),
        (["simulate", "fabric.json"], "no key 'id'"),
    ],
)
def test_bad_usage_is_refused(run: Run, argv: list[str], says: str) -> None:
    assert says in run(*argv, rc=2).stderr


def test_R24_a_site_that_is_no_ring_is_refused_whatever_else_it_says(run: Run) -> None:
    text = run("plan", "--from", "fabric.json", rc=2, topology="switch").stderr
    assert 'seen:   topology = "switch"' in text and 'topology = "ring"' in text


def test_a_node_that_was_not_seen_is_named(run: Run) -> None:
    done = run("plan", "--from", "fabric.json", rc=1, unseen={"spark2": "no route to host"})
    assert "spark2" in done.stderr and "no route to host" in done.stderr


def test_a_site_whose_nodes_do_not_answer(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    refused = "ssh: connect to host x port 22: Connection refused"
    ssh.write_text(f"#!/bin/sh\necho '{refused}' >&2\nexit 255\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ssh.parent}:{os.environ['PATH']}")
    done = run("plan", "--site", str(ROOT / "sites" / "four-sparks-ring.toml"), rc=1)
    assert all(f"spark{number}" in done.stderr for number in (1, 2, 3, 4))
