"""The set-up: what it refuses, what it says, and that it does nothing twice."""

import ast
import json
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from scripts import environment
from scripts.set_up import machine, step, torch_choice, virtual
from tests.serving import ROOT, without_make


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    return tmp_path / "venv"


def test_an_old_python_is_refused_with_what_to_type(
    venv: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(machine, "OLDEST_PYTHON", (9, 0))
    assert environment.main(["--venv", str(venv)]) == 1
    said = capsys.readouterr().err
    assert f"{sys.executable} is Python 3." in said
    assert "make PYTHON=" in said
    assert not venv.exists()


@pytest.mark.parametrize("module", [environment, machine, step, torch_choice, virtual])
def test_an_old_python_can_read_the_set_up(module: ModuleType) -> None:
    tree = ast.parse(Path(module.__file__ or "").read_text(), feature_version=(3, 7))
    future = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert [alias.name for alias in future[0].names] == ["annotations"]
    functions = [item for item in vars(module).values() if hasattr(item, "__code__")]
    kinds = {type(kind) for item in functions for kind in item.__annotations__.values()}
    assert kinds == {str}, "an annotation that an old Python would evaluate"


def test_an_old_glibc_and_another_c_library_are_refused(
    venv: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "2.31"))
    assert environment.main(["--venv", str(venv)]) == 1
    assert "glibc 2.31, wanted glibc 2.34 or newer" in capsys.readouterr().err
    assert not venv.exists()
    with pytest.raises(step.SetupError, match="not glibc, wanted"):
        machine.check_libc("", "")
    machine.check_libc("glibc", "2.34")
    machine.check_libc("glibc", "3.0")


@pytest.mark.parametrize(
    ("programs", "package"), [(("cc", "gcc", "clang"), "gcc"), (("setsid",), "util-linux")]
)
def test_missing_system_packages_are_named_for_apt(
    venv: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    programs: tuple[str, ...],
    package: str,
) -> None:
    def which(name: str) -> str | None:
        return None if name in programs else f"/usr/bin/{name}"

    monkeypatch.setattr(shutil, "which", which)
    assert environment.main(["--venv", str(venv)]) == 1
    assert f"sudo apt-get install {package}\n" in capsys.readouterr().err
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "ps" else f"/bin/{name}")
    assert all(machine.system_packages().values())


def test_another_system_is_refused(
    venv: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert environment.main(["--venv", str(venv)]) == 1
    assert "this is darwin, wanted linux" in capsys.readouterr().err


def test_a_full_disk_is_refused_before_anything_is_made(
    venv: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(machine, "FREE_BYTES_WANTED", 10**18)
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


def test_the_fingerprint_follows_the_requirement_files_and_the_torch_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = ("TETRASPARK_TORCH", "TETRASPARK_TORCH_INDEX")
    for name in settings:
        monkeypatch.delenv(name, raising=False)
    before = environment.fingerprint(["torch", "test"])
    for name in settings:
        monkeypatch.setenv(name, "another")
        assert environment.fingerprint(["torch"])["torch"] != before["torch"]
        monkeypatch.delenv(name)
    copied = shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    monkeypatch.setattr(environment, "REQUIREMENTS", copied)
    (copied / "test.txt").write_text("pytest==1\n")
    after = environment.fingerprint(["torch", "test"])
    assert (after["torch"], after["test"] != before["test"]) == (before["torch"], True)


def test_a_failed_step_shows_the_end_of_its_output_and_names_the_log(venv: Path) -> None:
    command = [sys.executable, "-c", "print('first'); print('the reason'); raise SystemExit(3)"]
    with pytest.raises(step.SetupError) as caught:
        step.run_step("a step", command, venv)
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
    assert step.is_news(line) is shown


def test_the_size_of_a_file_is_known_and_of_nothing_is_not(tmp_path: Path) -> None:
    file = tmp_path / "a.whl"
    file.write_bytes(b"x" * 1234)
    assert torch_choice.size_of(file.as_uri()) == 1234
    assert torch_choice.size_of((tmp_path / "no.whl").as_uri()) is None


def without_pip(venv: Path) -> Path:
    """Make what an interrupted creation leaves: a Python, and no pip."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    return venv


def test_the_reason_of_pip_is_shown_when_there_is_none(venv: Path) -> None:
    with pytest.raises(step.SetupError) as caught:
        torch_choice.torch_arguments(without_pip(venv))
    assert "No module named pip" in str(caught.value)
    assert "TETRASPARK_TORCH=" in str(caught.value)


def test_the_reason_of_pip_is_shown_when_the_index_has_no_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = tmp_path / "index"
    (index / "torch").mkdir(parents=True)
    (index / "torch" / "index.html").write_text("<!DOCTYPE html><html></html>")
    monkeypatch.delenv("TETRASPARK_TORCH", raising=False)
    monkeypatch.setenv("TETRASPARK_TORCH_INDEX", index.as_uri())
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    # this environment serves: nothing is installed, pip only looks
    monkeypatch.setenv("PIP_IGNORE_INSTALLED", "1")
    with pytest.raises(step.SetupError) as caught:
        torch_choice.torch_arguments(Path(sys.prefix))
    assert "No matching distribution found for torch==" in str(caught.value)
    assert "TETRASPARK_TORCH=" in str(caught.value)


def test_an_environment_without_pip_is_made_anew(
    venv: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (without_pip(venv) / "left").write_text("over")
    virtual.make_environment(venv)
    assert "has no pip that runs: it is made anew" in capsys.readouterr().out
    assert not (venv / "left").exists()
    assert (venv / "tetraspark-environment.log").exists()
    assert virtual.fault_of(venv) == ""
    (venv / "kept").write_text("")
    virtual.make_environment(venv)
    assert (venv / "kept").exists() and capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("body", "said"),
    [("echo 3.9", "is of Python 3.9, asked for is 3."), ("exit 3", "has no Python that runs")],
)
def test_an_environment_of_another_python_is_made_anew(
    venv: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    body: str,
    said: str,
) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(virtual, "run_step", lambda title, command, venv: ran.append(command))
    python = venv / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\n{body}\n")
    python.chmod(0o755)
    with pytest.raises(step.SetupError, match="holds a Python, but no virtual environment"):
        virtual.make_environment(venv)
    (venv / "pyvenv.cfg").write_text("version = 3.9.2\n")
    virtual.make_environment(venv)
    assert said in capsys.readouterr().out
    assert ran == [[sys.executable, "-m", "venv", "--clear", str(venv)]]


def test_an_interrupt_is_one_line_and_ends_the_step(tmp_path: Path) -> None:
    slow = "import time; print('ERROR: up', flush=True); time.sleep(300)"
    code = (
        "import sys; from pathlib import Path; from scripts import environment\n"
        "from scripts.set_up import step as one\n"
        f"step = ('slow', [sys.executable, '-c', {slow!r}], Path({str(tmp_path)!r}))\n"
        "environment.prepare = lambda venv, test: one.run_step(*step)\n"
        "sys.exit(environment.main([]))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    while "up" not in process.stdout.readline():
        assert process.poll() is None
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert time.monotonic() - started < 60
    assert process.returncode == 130
    assert errors.splitlines() == ["set-up: interrupted; the same command goes on from here"]


@pytest.mark.parametrize("target", ["serve", "stop", "status", "test", "lint", "environment"])
def test_make_quotes_the_names_of_its_files(target: str) -> None:
    venv, site = "/a b/it's $HOME/venv", "my sites/one's.toml"
    make = ["make", "-n", target, f"VENV={venv.replace('$', '$$')}", f"SITE={site}"]
    done = subprocess.run(
        make, cwd=ROOT, env=without_make(), capture_output=True, text=True, check=True
    )
    rows = [shlex.split(row) for row in done.stdout.splitlines()]
    assert rows
    for row in rows:
        named = [word for word in row if word in (venv, site) or word.startswith(f"{venv}/bin/")]
        assert named, row
        assert not [word for word in row if "it's" in word and word not in named], row
    if target in ("serve", "stop", "status"):
        assert rows[-1] == [f"{venv}/bin/tetraspark", target, "--site", site]


def test_ci_installs_what_the_set_up_demands() -> None:
    text = (ROOT / ".ci" / "run").read_text()
    for package in machine.system_packages():
        assert package in text
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_sizes_and_a_cuda_build_are_announced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "torch.whl"
    file.write_bytes(b"x" * 2_000_000)
    torch_choice.announce({"torch": file.as_uri(), "nvidia-nccl": (tmp_path / "gone").as_uri()})
    said = capsys.readouterr().out
    assert "2 MB in 2 files, size unknown: nvidia-nccl" in said
    assert "TETRASPARK_TORCH_INDEX" in said
