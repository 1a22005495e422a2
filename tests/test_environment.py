"""scripts/environment.py: what it refuses, what it says, and that it does nothing twice."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from scripts import environment
from tests.serving import ROOT


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    return tmp_path / "venv"


def test_an_old_python_is_refused_with_what_to_type(
    venv: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environment, "OLDEST_PYTHON", (9, 0))
    assert environment.main(["--venv", str(venv)]) == 1
    said = capsys.readouterr().err
    assert f"{sys.executable} is Python 3." in said
    assert "make PYTHON=" in said
    assert not venv.exists()


def test_missing_system_packages_are_named_for_apt(
    venv: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def which(name: str) -> str | None:
        return None if name in ("cc", "gcc", "clang") else f"/usr/bin/{name}"

    monkeypatch.setattr(shutil, "which", which)
    assert environment.main(["--venv", str(venv)]) == 1
    assert "sudo apt-get install gcc" in capsys.readouterr().err


def test_another_system_is_refused(
    venv: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert environment.main(["--venv", str(venv)]) == 1
    assert "this is darwin, wanted linux" in capsys.readouterr().err


def test_a_full_disk_is_refused_before_anything_is_made(
    venv: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environment, "FREE_BYTES_WANTED", 10**18)
    assert environment.main(["--venv", str(venv)]) == 1
    assert "GB free, wanted 1000000000 GB" in capsys.readouterr().err
    assert not venv.exists()


def test_an_environment_with_the_right_stamp_is_left_alone(
    venv: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    venv.mkdir()
    stamp = venv / "tetraspark-environment.json"
    stamp.write_text(json.dumps(environment.fingerprint(["torch", "engine", "sglang"])))
    assert environment.main(["--venv", str(venv)]) == 0
    assert capsys.readouterr().out == ""
    assert [file.name for file in venv.iterdir()] == [stamp.name]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"torch": "another"}'])
def test_a_damaged_or_old_stamp_is_no_stamp(venv: Path, text: str) -> None:
    venv.mkdir()
    (venv / "stamp").write_text(text)
    assert environment.read_stamp(venv / "stamp") != environment.fingerprint(["torch"])


def test_the_fingerprint_follows_the_requirement_files_and_the_torch_setting(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = environment.fingerprint(["torch", "test"])
    monkeypatch.setenv("TETRASPARK_TORCH", "torch==2.14.1")
    assert environment.fingerprint(["torch"])["torch"] != before["torch"]
    monkeypatch.delenv("TETRASPARK_TORCH")
    copied = shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    monkeypatch.setattr(environment, "REQUIREMENTS", copied)
    (copied / "test.txt").write_text("pytest==1\n")
    after = environment.fingerprint(["torch", "test"])
    assert (after["torch"], after["test"] != before["test"]) == (before["torch"], True)


def test_a_failed_step_shows_the_end_of_its_output_and_names_the_log(venv: Path) -> None:
    command = [sys.executable, "-c", "print('first'); print('the reason'); raise SystemExit(3)"]
    with pytest.raises(environment.SetupError) as caught:
        environment.run_step("a step", command, venv)
    assert "the reason" in str(caught.value)
    log = venv / "tetraspark-environment.log"
    assert str(log) in str(caught.value)
    assert "first" in log.read_text()


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("  Downloading torch-2.13.0.whl (189.3 MB)\n", True),
        ("  Downloading wcwidth-0.9.4.whl (785 kB)\n", False),
        ("ERROR: No matching distribution\n", True),
        ("Collecting numpy\n", False),
    ],
)
def test_only_news_is_shown(line: str, shown: bool) -> None:
    assert environment.is_news(line) is shown


def test_the_size_of_a_file_is_known_and_of_nothing_is_not(tmp_path: Path) -> None:
    file = tmp_path / "a.whl"
    file.write_bytes(b"x" * 1234)
    assert environment.size_of(file.as_uri()) == 1234
    assert environment.size_of((tmp_path / "no.whl").as_uri()) is None


def test_a_requirement_nobody_offers_names_the_setting(
    venv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "planned_downloads", lambda venv, arguments: None)
    with pytest.raises(environment.SetupError, match="TETRASPARK_TORCH="):
        environment.torch_arguments(venv)


def test_sizes_and_a_cuda_build_are_announced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "torch.whl"
    file.write_bytes(b"x" * 2_000_000)
    environment.announce({"torch": file.as_uri(), "nvidia-nccl": (tmp_path / "gone").as_uri()})
    said = capsys.readouterr().out
    assert "2 MB in 2 files, size unknown: nvidia-nccl" in said
    assert "TETRASPARK_TORCH_INDEX" in said
