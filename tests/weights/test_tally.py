"""Hashes of a folder: right, told of on the way, kept, and never of another file."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.weights.checkpoints import Here, write_checkpoint
from tetraspark.weights.inside import tally as program
from tetraspark.weights.node_program import Progress, script
from tetraspark.weights.tally import Tally, take_tally, tree_sha256


class Tallies:
    """Tallies of a folder, with a cache of their own, as runs one after another would take."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder = folder
        self.home = cache

    def take(self, full: bool = False, names: list[str] | None = None) -> Tally:
        request = {"folder": str(self.folder), "names": names, "hash": True, "full": full}
        text = script("tally", request).decode()
        home = "HOME = pwd.getpwuid(os.getuid()).pw_dir"
        assert text.count(home) == 1
        text = text.replace(home, f"HOME = {str(self.home)!r}")
        done = subprocess.run(
            [sys.executable, "-I", "-"], input=text.encode(), capture_output=True, check=True
        )
        return Tally.of("node1", json.loads(done.stdout.splitlines()[-1]))


@pytest.fixture
def tallies(tmp_path: Path) -> Tallies:
    return Tallies(write_checkpoint(tmp_path / "model"), tmp_path / "home")


def test_each_file_has_the_hash_that_sha256sum_prints(tallies: Tallies) -> None:
    (tallies.folder / "more").mkdir()
    (tallies.folder / "more" / "a.txt").write_text("a")
    (tallies.folder / ".hidden").write_text("no part of a checkpoint")
    found = tallies.take()
    names = sorted(found.files)
    assert "more/a.txt" in names and ".hidden" not in names and found.cached == 0
    printed = subprocess.run(
        ["sha256sum", *names], cwd=tallies.folder, capture_output=True, check=True
    )
    assert tree_sha256(found.sums) == hashlib.sha256(printed.stdout).hexdigest()
    assert all(one.size == (tallies.folder / name).stat().st_size
               for name, one in found.files.items())  # fmt: skip


def test_hashes_are_kept_over_a_rename_and_not_over_a_change(tallies: Tallies) -> None:
    before = tallies.take()
    config = tallies.folder / "config.json"
    config.rename(tallies.folder / "renamed.json")
    assert tallies.take().cached == len(before.files)
    (tallies.folder / "renamed.json").write_text("{}")
    after = tallies.take()
    assert after.cached == len(before.files) - 1
    assert after.sums["renamed.json"] == hashlib.sha256(b"{}").hexdigest()


def test_only_full_sees_a_change_that_kept_size_and_time(tallies: Tallies) -> None:
    before, file = tallies.take(), tallies.folder / "tokenizer.json"
    state = file.stat()
    file.write_text("[]")
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert tallies.take().sums == before.sums
    assert tallies.take(full=True).sums["tokenizer.json"] == hashlib.sha256(b"[]").hexdigest()
    assert tallies.take().sums["tokenizer.json"] == hashlib.sha256(b"[]").hexdigest()


@pytest.mark.parametrize("text", ["", "[]", '{"1:2": 3}', "\x00"])
def test_a_cache_that_is_damaged_is_no_cache(tallies: Tallies, text: str) -> None:
    cache = tallies.home / ".cache/tetraspark/weights.sha256.json"
    cache.parent.mkdir(parents=True)
    cache.write_text(text)
    first = tallies.take()
    assert (first.cached, tallies.take().cached) == (0, len(first.files))


def test_without_a_place_for_the_cache_the_hashes_are_the_same(tallies: Tallies) -> None:
    wanted = tallies.take().sums
    shutil.rmtree(tallies.home)
    tallies.home.write_text("no folder")
    assert tallies.take().sums == wanted


def test_only_the_named_files_are_read(tallies: Tallies) -> None:
    assert set(tallies.take(names=["config.json", "absent"]).files) == {"config.json"}


def test_L26_a_file_that_cannot_be_read_is_an_error_and_no_hash(tallies: Tallies) -> None:
    (tallies.folder / "broken").symlink_to("/proc/self/mem")
    found = tallies.take()
    assert found.files["broken"].sha256 is None
    assert found.files["broken"].error == "Input/output error"
    assert "broken" not in found.sums


def test_L26_no_program_of_a_node_uses_a_shell() -> None:
    for path in Path(program.__file__).parent.glob("*.py"):
        text = path.read_text()
        assert "shell=True" not in text and "os.system" not in text and "popen(" not in text


def test_progress_is_told_in_bytes(tallies: Tallies) -> None:
    seen: list[Progress] = []
    total = sum(one.stat().st_size for one in tallies.folder.iterdir())
    take_tally(Here(), "node1", str(tallies.folder), seen.append, full=True)
    assert seen
    assert all((one.node, one.phase, one.total) == ("node1", "hash", total) for one in seen)
    assert all(0 < one.done <= total for one in seen)
