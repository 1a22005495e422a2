"""The scripts that are copied into images, each run as the image runs it."""

import json
import os
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.images.web import Page, Web
from tetraspark.images.inside import base_check, health, receipt

INSIDE = Path(health.__file__).parent


def run(script: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a script by itself: no site-packages, so nothing but the standard library."""
    return subprocess.run(
        [sys.executable, "-S", "-I", str(INSIDE / script), *words],
        env={"PATH": os.environ["PATH"]} | env,
        capture_output=True,
        text=True,
        check=False,
    )


def process(proc: Path, pid: int, title: str, state: str) -> None:
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    (folder / "cmdline").write_bytes(title.encode() + b"\0")
    (folder / "stat").write_text(f"{pid} (a ) name) {state} 1 1")


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    process(tmp_path / "proc", 1, "python3", "S")
    process(tmp_path / "proc", 40, "sglang::scheduler_TP2", "R")
    return tmp_path / "proc"


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("TETRASPARK_API", "TETRASPARK_RUN_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TETRASPARK_RANK", "2")
    return monkeypatch


def test_a_worker_is_healthy_while_its_scheduler_runs(
    proc: Path, environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert health.main(proc) == 0
    assert capsys.readouterr().out == "rank 2: scheduler runs\n"


@pytest.mark.parametrize(("state", "word"), [("T", "stopped"), ("Z", "a zombie")])
def test_a_scheduler_that_does_not_run(
    tmp_path: Path,
    environment: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    state: str,
    word: str,
) -> None:
    process(tmp_path / "proc", 40, "sglang::scheduler_TP2", state)
    assert health.main(tmp_path / "proc") == 1
    assert capsys.readouterr().out == f"rank 2: scheduler process 40 is {word}\n"


def test_this_machine_has_no_scheduler_and_the_script_says_so() -> None:
    found = run("health.py", TETRASPARK_RANK="0")
    assert (found.returncode, found.stdout) == (1, "rank 0: no scheduler process\n")


STATES = [
    ({"at": 0.0, "verdict": "ok"}, "said nothing for"),
    ({"at": None}, "collectives.json"),
    ({"verdict": "ok"}, "'at'"),
    ({"at": "now", "verdict": "failed"}, "have failed"),
    ([], "collectives.json"),
]


@pytest.mark.parametrize(("state", "word"), STATES)
def test_collectives_that_are_silent_or_failed(
    proc: Path,
    tmp_path: Path,
    environment: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    state: object,
    word: str,
) -> None:
    environment.setenv("TETRASPARK_RUN_DIR", str(tmp_path))
    if isinstance(state, dict) and state.get("at") == "now":
        state = state | {"at": time.time()}
    path = tmp_path / "rank2.collectives.json"
    path.write_text(json.dumps(state))
    assert health.main(proc) == 1
    assert word in capsys.readouterr().out
    path.write_text(json.dumps({"at": time.time(), "verdict": "ready"}))
    assert health.main(proc) == 0
    path.unlink()
    assert health.main(proc) == 0


def test_the_head_asks_for_a_token(
    proc: Path,
    server: Web,
    environment: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    environment.setenv("TETRASPARK_API", server.url)
    server.pages["/health"] = Page(b"fine")
    server.pages["/health_generate"] = Page(b"", 503)
    assert health.main(proc) == 1
    assert "HTTP 503" in capsys.readouterr().out
    server.pages["/health_generate"] = Page(b"")
    assert health.main(proc) == 0
    assert "a token was generated" in capsys.readouterr().out
    environment.setenv("TETRASPARK_API", "http://127.0.0.1:9")
    assert health.main(proc) == 1
    assert "no answer" in capsys.readouterr().out


def test_a_base_that_has_all(tmp_path: Path) -> None:
    there = [f"--file={tmp_path}", "--command=sh", "--libc=2.17", "--pip=20.0"]
    python = "--python={}.{}".format(*sys.version_info[:2])
    assert base_check.main([*there, python, f"--machine={os.uname().machine}"]) == 0


def test_a_base_that_lacks_everything() -> None:
    words = ["--machine=vax", "--python=2.7", "--libc=9.9", "--pip=99", "--command=no-such"]
    found = run("base_check.py", *words, "--file=/no/such")
    assert found.returncode == 1
    for text in ("wanted vax", "wanted 2.7", "glibc 9.9", "wanted 99", "no command no-such",
                 "no file /no/such", "[image] base ="):  # fmt: skip
        assert text in found.stderr


@pytest.fixture
def home(tmp_path: Path) -> Path:
    wanted = f"pytest=={version('pytest')} --hash=sha256:0\n"
    (tmp_path / "requirements.txt").write_text(wanted)
    (tmp_path / "SHA256SUMS").write_text(f"{'a' * 64}  wheels/one.whl\n")
    return tmp_path


def test_the_receipt_says_what_is_there_and_never_when(home: Path) -> None:
    assert receipt.main(["release", str(home)]) == 0
    first = (home / "receipt.json").read_bytes()
    assert receipt.main(["release", str(home)]) == 0
    assert (home / "receipt.json").read_bytes() == first
    found = json.loads(first)
    assert found["recipe"] == "release" and found["machine"] == os.uname().machine
    assert found["files"] == {"wheels/one.whl": "a" * 64} and found["libraries"] == {}
    assert found["packages"]["pytest"] == version("pytest")


def test_the_receipt_has_the_hashes_of_the_compiled_libraries(home: Path) -> None:
    assert receipt.main(["canary-roce", str(home), "--proxy"]) == 0
    libraries = json.loads((home / "receipt.json").read_text())["libraries"]
    assert sorted(libraries) == ["proxy.c", "proxy_verbs.c"]
    for hashes in libraries.values():
        assert len(hashes["source"]) == len(hashes["library"]) == 64


def test_a_package_of_another_version_fails_the_build(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "requirements.txt").write_text("pytest==0.1 --hash=sha256:0\nno-such==1\n")
    assert receipt.main(["release", str(home)]) == 1
    said = capsys.readouterr().err
    assert "wanted 0.1" in said and "no-such: not installed, wanted 1" in said
