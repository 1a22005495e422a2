"""`tetraspark pack --local`, and the page on it: each command that it shows is run."""

import json
import os
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.engram.checkpoint import ROWS, Made, make_checkpoint
from tests.serving import COMMAND
from tetraspark.cli.main import app
from tetraspark.errors import UsageError

WIDE = os.environ | {"COLUMNS": "300"}
PAGE = Path(__file__).parents[2] / "docs" / "engram.md"


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return make_checkpoint(tmp_path / "model")


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [str(COMMAND), "pack", *words]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False, env=WIDE)


def local(rank: int = 0, *words: str) -> list[str]:
    return ["--local", "model", "--out", "engram", "--rank", str(rank), "--tp", "4", *words]


def report(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_one_rank_here_is_packed_then_whole_then_found_damaged(made: Made, tmp_path: Path) -> None:
    first = run(tmp_path, *local(2))
    assert first.returncode == 0, first.stderr
    assert re.search(r"this machine +2 +engram-l14-r2of4 +\d+\.\d kB +packed", first.stdout)
    assert "this machine packed engram-l1-r2of4" in first.stderr
    again = report(run(tmp_path, *local(2, "--json")))
    assert [one["state"] for one in again["nodes"][0]["shards"]] == ["whole", "whole"]
    path = tmp_path / "engram/engram-l1-r2of4.bin"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    done = run(tmp_path, *local(2, "--verify"))
    assert done.returncode == 1
    assert re.search(r"engram-l1-r2of4 +\d+\.\d kB +damaged", done.stdout)
    assert re.search(r"engram-l14-r2of4 +\d+\.\d kB +verified", done.stdout)
    assert "is not the one that was packed" in done.stderr
    fix = re.search(r"fix: +(tetraspark pack --local .*--replace)$", done.stderr, re.MULTILINE)
    assert fix, done.stderr
    words = shlex.split(fix[1])[1:]
    for last in ("--replace", "--verify"):
        mended = CliRunner().invoke(app, [*words[:-1], last])
        assert mended.exit_code == 0, mended.output
    assert not list((tmp_path / "engram").glob(".*"))


def test_a_plan_does_nothing(made: Made, tmp_path: Path) -> None:
    done = run(tmp_path, *local(1, "--dry-run"))
    assert done.returncode == 0
    first, end = ROWS[14] // 4, ROWS[14] // 2
    assert f"engram-l14-r1of4.bin {first} to {end}" in re.sub(" +", " ", done.stdout)
    assert not (tmp_path / "engram").exists()
    free = report(run(tmp_path, *local(1, "--dry-run", "--json")))["nodes"][0]["free_bytes"]
    room = os.statvfs(tmp_path)
    assert free == pytest.approx(room.f_bavail * room.f_frsize, rel=0.2)


@pytest.mark.parametrize(
    ("out", "fix"),
    [
        ("file", "a file is there, {here}/file: name a folder"),
        ("file/below", "a file is there, {here}/file: name a folder"),
        ("/proc/nowhere/below", "ls -ld /proc"),
    ],
)
def test_a_folder_that_cannot_be_made_has_a_fix_that_can_be_typed(
    made: Made, tmp_path: Path, out: str, fix: str
) -> None:
    (tmp_path / "file").write_text("")
    done = run(tmp_path, "--local", "model", "--out", out, "--rank", "0", "--tp", "4")
    assert done.returncode == 1
    assert f"fix:    {fix.format(here=tmp_path)}\n" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--local", "model"], "without --out, --rank or --tp"),
        (local(4), "4 of 4"),
        (["--out", "x"], "given without --local"),
        (local(0, "--node", "spark1"), "given with --local"),
        (local(0, "--verify", "--replace"), "given with --replace"),
        (["--local", "nowhere", "--out", "x", "--rank", "0", "--tp", "1"], "no such file"),
    ],
)
def test_what_makes_no_sense_is_refused(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["pack", *words])
    assert isinstance(result.exception, UsageError), result.output
    assert said in str(result.exception)
    assert not (tmp_path / "engram").exists()


def test_a_checkpoint_without_tables_is_refused(made: Made, tmp_path: Path) -> None:
    (made.path / "config.json").write_text("{}")
    done = run(tmp_path, *local(0, "--json"))
    assert done.returncode == 2
    assert "engram_layer_ids is None" in report(done)["problems"][0]["seen"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_program_too(made: Made, tmp_path: Path, number: int) -> None:
    """A python3 that hangs stands for a pack that takes hours."""
    python = tmp_path / "bin/python3"
    python.parent.mkdir()
    python.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 300\n")
    python.chmod(0o755)
    environment = os.environ | {"PATH": f"{python.parent}:{os.environ['PATH']}"}
    argv = [str(COMMAND), "pack", *local()]
    pack = subprocess.Popen(argv, cwd=tmp_path, env=environment, stderr=subprocess.PIPE)
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert pack.poll() is None
        time.sleep(0.05)
    pack.send_signal(number)
    _, said = pack.communicate(timeout=60)
    assert pack.returncode == 128 + number
    assert b"interrupted: what is packed stays" in said
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


def commands() -> list[str]:
    blocks = re.findall(r"(?ms)^```sh\n(.*?)^```", PAGE.read_text())
    return [line for block in blocks for line in block.splitlines() if line]


def test_the_pages_commands_run(made: Made, tmp_path: Path) -> None:
    """Those for a fleet are parsed as far as the site, which is not there."""
    (tmp_path / "site.toml").write_text("")
    ran = 0
    for line in commands():
        words = shlex.split(line)
        assert words[:2] == ["tetraspark", "pack"], line
        done = run(tmp_path, *words[2:])
        if "--local" in words:
            assert done.returncode == 0, done.stderr
            ran += 1
        else:
            assert done.returncode == 2
            assert "site.toml" in done.stderr and "No such option" not in done.stderr
    assert ran >= 2 and len(commands()) > ran


def test_the_page_says_the_format_as_it_is(made: Made, tmp_path: Path) -> None:
    """The table of the first page's words, read back from a shard."""
    run(tmp_path, *local(3))
    page = (tmp_path / "engram/engram-l1-r3of4.bin").read_bytes()
    rows = re.findall(r"(?m)^\| (\d+) \| 8 \| (.+?) \|$", PAGE.read_text())
    assert [int(offset) for offset, _ in rows] == [0, 8, 16, 24, 32, 40]
    words = [int.from_bytes(page[int(at) : int(at) + 8], "little") for at, _ in rows]
    assert f"{words[0]:#x}" in rows[0][1].lower()
    assert words[1:] == [1, ROWS[1] * 3 // 4, ROWS[1], ROWS[1], 264]
    manifest = json.loads((tmp_path / "engram/engram-l1-r3of4.json").read_text())
    keys = re.findall(r"(?m)^\| `(\w+)` \|", PAGE.read_text())
    assert sorted(keys) == sorted(manifest)
