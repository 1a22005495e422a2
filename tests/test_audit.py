"""The audit of dependencies fails for a requirement that is not pinned or has no hash."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import audit, environment
from tests.serving import ROOT, without_make

HASH = "0" * 64


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    """A list and its lock, both as they should be."""
    folder = tmp_path / "requirements"
    folder.mkdir()
    (folder / "a.txt").write_text("# why\nhttpx==1.0\nA_b==2\n")
    lock = f"# how\nhttpx==1.0 \\\n    --hash=sha256:{HASH} \\\n    --hash=sha256:{HASH}\n"
    (folder / "a.lock").write_text(f"{lock}a-b==2 --hash=sha256:{HASH}\n")
    return folder


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_the_projects_own_lists_are_pinned_and_hashed() -> None:
    assert audit.lists(ROOT / "requirements") == []
    assert audit.project(ROOT / "pyproject.toml", ROOT / "requirements") == []
    assert len(audit.every_pin(ROOT / "requirements")) > 100


def test_this_environment_is_as_pinned() -> None:
    assert audit.installed(ROOT / "requirements") == []


def test_what_is_as_it_should_be_has_no_problems(lists: Path) -> None:
    assert audit.lists(lists) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("a.txt", "httpx==1.0", "httpx>=1.0", "a.txt:2: 'httpx>=1.0' is not pinned"),
        ("a.txt", "httpx==1.0", "httpx", "'httpx' is not pinned"),
        ("a.txt", "httpx==1.0", "https://x/httpx.whl", "is not pinned"),
        ("a.txt", "httpx==1.0", "httpx==1.*", "is not pinned"),
        ("a.txt", "A_b==2", "A_b==2\nnew==3", "a.lock: no hash of new==3"),
        ("a.txt", "A_b==2\n", "", "a.lock: a-b==2, wanted: none"),
        ("a.txt", "A_b==2", "A_b==3", "a.lock: a-b==2, wanted: 3"),
        ("a.lock", f" --hash=sha256:{HASH}\n", "\n", "a-b==2 without a SHA-256"),
        ("a.lock", "sha256:", "md5:", "httpx==1.0 without a SHA-256"),
        ("a.lock", "a-b==2", "a-b", "'a-b' is not pinned"),
    ],
)
def test_what_is_not_pinned_or_hashed_is_named(
    lists: Path, file: str, old: str, new: str, said: str
) -> None:
    change(lists / file, old, new)
    assert any(said in one for one in audit.lists(lists)), audit.lists(lists)


def test_a_list_without_a_lock_and_a_lock_without_a_list(lists: Path) -> None:
    (lists / "a.lock").rename(lists / "b.lock")
    assert {one.split(":")[0] for one in audit.lists(lists)} == {"a.lock", "b.lock"}


def test_a_dependency_of_the_project_that_no_list_pins(lists: Path, tmp_path: Path) -> None:
    pyproject = tmp_path / "pyproject.toml"
    text = '[build-system]\nrequires = []\n[project]\ndependencies = ["httpx>=2", "rich>=1"]\n'
    pyproject.write_text(text)
    assert audit.project(pyproject, lists) == [
        "pyproject.toml: httpx>=2, but the lists pin 1.0",
        f"pyproject.toml: rich>=1 is pinned by no list of {lists.name}/",
    ]


def test_an_environment_of_another_version_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("pytest==1.0\n")
    (told,) = audit.installed(tmp_path)
    assert told.startswith("pytest ") and told.endswith("wanted: 1.0; make environment")


def test_the_command_fails_with_every_problem(
    lists: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT / "requirements", lists, dirs_exist_ok=True)
    monkeypatch.setattr(audit, "REQUIREMENTS", lists)
    monkeypatch.setattr(audit, "installed", lambda folder: [])
    assert audit.main([]) == 0
    change(lists / "a.txt", "httpx==1.0", "httpx")
    assert audit.main([]) == 1
    assert "audit: a.txt:2: 'httpx' is not pinned" in capsys.readouterr().err


def test_the_set_up_installs_by_hash_whatever_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "torch_arguments", lambda venv: ["torch==0"])
    steps = dict(environment.steps(Path("venv"), ["torch", "engine", "sglang", "test"]))
    requirements = {title: words for title, words in steps.items() if "-r" in words}
    assert len(requirements) == 3
    for words in requirements.values():
        assert "--require-hashes" in words
        assert words[words.index("-r") + 1].endswith(".lock")
    # Torch is last of what comes from an index: all that it needs is there, by its hash.
    titles = list(steps)
    assert titles.index("torch") > titles.index("pinned list (about 110 MB)")


def test_a_changed_lock_makes_the_environment_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = environment.fingerprint(["test"])
    copied = shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    monkeypatch.setattr(environment, "REQUIREMENTS", copied)
    assert environment.fingerprint(["test"]) == before
    with (copied / "test.lock").open("a") as lock:
        lock.write("#\n")
    assert environment.fingerprint(["test"]) != before


def test_make_audit_asks_for_advisories() -> None:
    make = ["make", "-n", "audit", f"PYTHON={sys.executable}"]
    told = subprocess.run(make, cwd=ROOT, env=without_make(), capture_output=True, check=True)
    assert told.stdout.decode().splitlines()[-1].endswith("scripts/audit.py --advisories")
