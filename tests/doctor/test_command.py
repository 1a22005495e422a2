"""`tetraspark doctor` as a command: what is refused, what is listed, how a report looks."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.doctor.faults import FAULTS
from tests.doctor.stand import Stand, site
from tests.serving import COMMAND, write_site
from tetraspark.cli.doctor import _print
from tetraspark.doctor.catalogue import CATALOGUE


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(COMMAND), "doctor", *map(str, words)],
        env=os.environ | {"COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_list_has_every_check_in_a_line() -> None:
    done = run("--list")
    assert done.returncode == 0
    listed = [line.split()[0] for line in done.stdout.splitlines()[1:]]
    assert listed == [one.id for one in CATALOGUE]
    found = json.loads(run("--list", "--json").stdout)
    assert [one["id"] for one in found] == listed
    assert {"title", "scope", "kinds", "required", "burns"} <= found[0].keys()


@pytest.mark.parametrize("words", [("--only", "RDMA"), ("--node", "spark1"), ("--burn",)])
def test_options_without_effect_beside_the_list_are_refused(words: tuple[str, ...]) -> None:
    done = run("--list", *words)
    assert done.returncode == 2
    assert f"error: {words[0]}" in done.stderr


def test_an_unknown_check_is_refused_with_the_nearest(tmp_path: Path) -> None:
    done = run("--site", site(tmp_path).path, "--only", "RDMA.MTU,DISK.ROM")
    assert done.returncode == 2
    assert "wanted: the ID of a check, or its beginning: DISK.ROOM?" in done.stderr
    assert "RDMA.MTU" not in done.stderr


def test_a_dry_run_shows_commands_and_touches_nothing(tmp_path: Path) -> None:
    loaded = site(tmp_path)
    done = run("--site", loaded.path, "--dry-run", "--burn", "--node", "spark2")
    assert done.returncode == 0, done.stderr
    assert "docker inspect --format '{{json .}}' four:1 " in done.stdout
    assert "\ndocker run --rm --interactive --gpus=all" in done.stdout
    assert "~/models/v4/*" in done.stdout
    assert "spark1" not in done.stdout
    steps = json.loads(run("--site", loaded.path, "--dry-run", "--json").stdout)
    assert {one["node"] for one in steps} == {"spark1", "spark2", "spark3", "spark4"}
    assert not any("docker run" in line for one in steps for line in one["lines"])


def test_a_look_that_takes_a_while_is_told_of_before_it(tmp_path: Path) -> None:
    """A line, where there is no terminal. No such name is ever found, and that at once."""
    loaded = site(tmp_path, ('"192.168.1.12"', '"192.168.1.12", ssh_host = "spark2.invalid"'))
    done = run("--site", loaded.path, "--only", "PYTHON", "--node", "spark2")
    assert done.stderr.startswith("looking at 1 node\n")
    assert done.returncode == 1


def test_a_local_line_as_json(tmp_path: Path) -> None:
    done = run("--site", write_site(tmp_path, "here"), "--json", "--only", "PORT,CHECKPOINT")
    report = json.loads(done.stdout)
    assert (done.returncode, report["ok"]) == (0, True)
    assert {one["verdict"] for one in report["checks"]} == {"ok"}
    assert {"id", "node", "verdict", "observed", "wanted", "fix", "fails"} == (
        report["checks"][0].keys()
    )


def test_the_report_shows_failures_first_and_ends_in_one_line(
    stand: Stand, capsys: pytest.CaptureFixture[str]
) -> None:
    for id in ("NCCL.CONF", "GPU.IDLE", "KERNEL.EQUAL"):
        FAULTS[id].make(stand)
    _print(stand.examine(), every=False)
    shown = capsys.readouterr().out
    heads = re.findall(r"(?m)^(\S.*)$", shown)
    assert heads[:2] == ["all nodes", "spark2"]
    of_two = re.findall(r"(?m)^  (failed|warning|ok) +(\S+)$", shown[shown.index("spark2\n") :])
    assert of_two == [("failed", "GPU.IDLE"), ("warning", "NCCL.CONF")]
    assert "    fix:    tetraspark stop, or end it: ssh 192.168.1.12 'ps -fp 114687'" in shown
    last = shown.splitlines()[-1]
    assert re.fullmatch(
        r"four not ready: \d+ ok, 2 warning, 1 failed, 0 unknown; 4 nodes in \d+\.\d s", last
    )


def test_odd_text_of_a_node_cannot_move_the_terminal(
    stand: Stand, capsys: pytest.CaptureFixture[str]
) -> None:
    stand[2].files["/etc/nccl.conf"] = "A=\x1b[2J1"
    _print(stand.examine("NCCL"), every=False)
    shown = capsys.readouterr().out
    assert "\x1b[2J" not in shown
    assert "\\x1b[2J1" in shown
