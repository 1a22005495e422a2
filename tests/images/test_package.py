"""Tetraspark itself as it goes into images: from a checkout, from a wheel, from a bare copy."""

import hashlib
import shutil
import subprocess
import sys
import tomllib
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

import tetraspark
from tests.serving import ROOT
from tetraspark.errors import UsageError
from tetraspark.images.package import read_package, refuse_dirty
from tetraspark.images.wheel import ENTRY_POINTS, make_wheel, wheel_name

SOURCE = Path(tetraspark.__file__).parent


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example")
    command = ["git", *identity, "-C", str(folder), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A small package in a checkout with one commit; returns its folder."""
    folder = tmp_path / "clone" / "src" / "tetraspark"
    (folder / "engine").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "engine" / "a.py").write_text("A = 1\n")
    root = tmp_path / "clone"
    git(root, "init", "-q")
    (root / ".gitignore").write_text("__pycache__/\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    return folder


def test_a_clean_checkout_is_its_commit(checkout: Path) -> None:
    (checkout / "__pycache__").mkdir()
    (checkout / "__pycache__" / "a.pyc").write_bytes(b"")
    package = read_package(checkout)
    assert package.files == {"tetraspark/__init__.py": b"", "tetraspark/engine/a.py": b"A = 1\n"}
    assert package.label == git(checkout, "rev-parse", "HEAD")
    refuse_dirty(package)


def changed(checkout: Path) -> None:
    (checkout / "engine" / "a.py").write_text("A = 2\n")


def untracked(checkout: Path) -> None:
    (checkout / "engine" / "b é.py").write_text("")


def deleted(checkout: Path) -> None:
    (checkout / "engine" / "a.py").unlink()


def staged(checkout: Path) -> None:
    changed(checkout)
    git(checkout, "add", ".")


@pytest.mark.parametrize("change", [changed, untracked, deleted, staged])
def test_a_checkout_with_changes_is_refused_and_labelled(checkout: Path, change: object) -> None:
    assert callable(change)
    change(checkout)
    package = read_package(checkout)
    assert len(package.changed) == 1 and package.label.endswith("-dirty")
    assert not any("b é" in path for path in package.files)
    with pytest.raises(UsageError, match="--allow-dirty"):
        refuse_dirty(package)


def test_the_variables_of_a_git_hook_hide_no_change(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "-q", "other")
    changed(checkout)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "other"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "other" / ".git" / "index"))
    assert read_package(checkout).label.endswith("-dirty")


def test_a_checkout_that_git_cannot_read_is_told(checkout: Path) -> None:
    (checkout.parents[1] / ".git" / "HEAD").write_text("nonsense\n")
    with pytest.raises(UsageError) as caught:
        read_package(checkout)
    assert "git" in str(caught.value)


def test_a_copy_without_git_is_named_so(tmp_path: Path) -> None:
    shutil.copytree(SOURCE / "engine", tmp_path / "tetraspark" / "engine")
    package = read_package(tmp_path / "tetraspark")
    assert package.label == f"{tetraspark.__version__}-copy"
    assert "tetraspark/engine/plugin.py" in package.files
    assert not any("__pycache__" in path for path in package.files)


def test_the_wheel_follows_from_its_files_alone() -> None:
    files = {"tetraspark/b.py": b"b", "tetraspark/a.py": b"a"}
    one = make_wheel(files, "0.1")
    assert one == make_wheel(dict(reversed(files.items())), "0.1")
    with zipfile.ZipFile(BytesIO(one)) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert archive.namelist()[:2] == ["tetraspark/a.py", "tetraspark/b.py"]


def test_the_wheel_has_the_entry_points_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = {"console_scripts": project["scripts"]} | project["entry-points"]
    assert (
        "\n".join(
            f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in points.items())
            for group, points in groups.items()
        )
        == ENTRY_POINTS
    )


ASK = """
import importlib.metadata as m, json
from tetraspark.images.package import read_package
p = read_package()
print(json.dumps([m.version("tetraspark"), p.label, len(p.files), list(p.changed),
      [e.value for e in m.entry_points(group="sglang.srt.plugins") if e.name == "tetraspark"]]))
"""


def test_pip_installs_the_wheel_with_its_hash_and_it_knows_itself(tmp_path: Path) -> None:
    files = read_package().files
    wheel = tmp_path / wheel_name(tetraspark.__version__)
    wheel.write_bytes(make_wheel(files, tetraspark.__version__))
    sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
    wanted = tmp_path / "requirements.txt"
    wanted.write_text(f"tetraspark=={tetraspark.__version__} --hash=sha256:{sha256}\n")
    target = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "--isolated", "install", "-q", "--no-index", "--no-deps",
           "--no-compile", "--require-hashes", "--disable-pip-version-check",
           "--root-user-action=ignore"]  # fmt: skip
    command = [*pip, f"--find-links={tmp_path}", f"--target={target}", "-r", str(wanted)]
    subprocess.run(command, check=True, env={"PATH": "/usr/bin:/bin"})

    def ask() -> str:
        run = [sys.executable, "-c", ASK]
        done = subprocess.run(
            run, env={"PYTHONPATH": str(target)}, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    label = f"{tetraspark.__version__}-wheel"
    points = '["tetraspark.engine.plugin:register"]'
    start = f'["{tetraspark.__version__}", "{label}", {len(files)}'
    assert ask() == f"{start}, [], {points}]"
    changed = target / "tetraspark" / "engine" / "label.py"
    changed.write_text(changed.read_text() + "\n")
    assert ask().startswith(f'{start.replace("-wheel", "-wheel-dirty")}, ["{changed}"]')
