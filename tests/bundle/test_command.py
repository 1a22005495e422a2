"""`tetraspark support-bundle` on a local line: the file, its mode, and no second one over it."""

import json
import tarfile
from pathlib import Path

import pytest

from tests.serving import Command, write_site
from tetraspark.fleet.runner import Inventory
from tetraspark.line.local_plan import local_plan
from tetraspark.line.run import RunStore
from tetraspark.site.engines import RELEASE
from tetraspark.site.load import load_site

KEY = "kEy-0123456789/abc"


@pytest.fixture
def command(tmp_path: Path) -> Command:
    (tmp_path / "local.key").write_text(f"{KEY}\n")
    (tmp_path / "local.key").chmod(0o600)
    site = write_site(tmp_path, "bundled", {"[api]\n": '[api]\nkey_file = "local.key"\n'})
    inventory = Inventory("/venv/bin/python", RELEASE, (0, 1), (), (31000, 1, 2, 3, 4))
    state = tmp_path / "state"
    run = RunStore("bundled", state).create(local_plan(load_site(site), inventory))
    run.record(phase="failed", reason="it did")
    (run.folder / "rank0.log").write_text(f"[2026-11-30 08:00:00] said {KEY}\n")
    return Command(site, state)


def test_a_bundle_of_a_local_line(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "out.tar.gz"
    index = command.json("support-bundle", "--out", str(file))
    assert index["path"] == str(file)
    assert file.stat().st_mode & 0o777 == 0o600
    with tarfile.open(file) as tar:
        texts = {
            name.partition("/")[2]: handle.read().decode()
            for name in tar.getnames()
            if (handle := tar.extractfile(name))
        }
    assert json.loads(texts.pop("index.json"))["files"] == index["files"]
    assert not [name for name, text in texts.items() if KEY in text]
    assert texts["line/rank0.log"].endswith("said [hidden]\n")
    status = json.loads(texts["line/status.json"])
    assert (status["line"], status["verdict"]) == ("bundled", "down")
    assert "MemAvailable" in texts["nodes/this-machine/meminfo.txt"]
    assert {one["node"] for one in index["findings"]} == {"this-machine"}
    again = command.run("support-bundle", "--out", str(file))
    assert again.returncode == 2
    assert "the file exists" in again.stderr


def test_a_key_that_cannot_be_read_is_told(command: Command, tmp_path: Path) -> None:
    (tmp_path / "local.key").unlink()
    index = command.json("support-bundle", "--out", str(tmp_path / "out.tar.gz"))
    (told,) = [one for one in index["missing"] if one["name"] == str(tmp_path / "local.key")]
    assert "look before you send" in told["why"]
