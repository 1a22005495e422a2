"""Hashes of what is in an image, taken by the script itself."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tetraspark.images import contents


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    (home / "sub").mkdir(parents=True)
    (home / "requirements.txt").write_text("pytest==0 --hash=sha256:00\n")
    (home / "receipt.json").write_text('{"recipe": "canary"}')
    (home / "sub/module.py").write_text("x = 1\n")
    (home / "link").symlink_to("sub/module.py")
    return home


def run(folder: Path, *trees: Path) -> Any:
    with Path(contents.__file__).open("rb") as script:
        done = subprocess.run(
            [sys.executable, "-", str(folder), *map(str, trees)],
            stdin=script,
            capture_output=True,
            check=True,
        )
    return json.loads(done.stdout)


def test_receipt_folders_and_packages(folder: Path) -> None:
    found = run(folder, folder / "sub")
    assert found["receipt"] == {"recipe": "canary"}
    assert set(found["contents"]) == {str(folder), str(folder / "sub"), "pytest"}
    assert found == run(folder, folder / "sub")


def test_times_and_compiled_modules_do_not_count(folder: Path) -> None:
    before = run(folder)
    os.utime(folder / "sub/module.py", (1, 1))
    (folder / "sub/module.pyc").write_bytes(b"compiled")
    assert run(folder) == before


def test_contents_modes_links_and_names_count(folder: Path) -> None:
    seen = [run(folder)["contents"][str(folder)]]
    module, link = folder / "sub/module.py", folder / "link"
    module.write_text("x = 2\n")
    seen.append(run(folder)["contents"][str(folder)])
    module.chmod(0o755)
    seen.append(run(folder)["contents"][str(folder)])
    link.unlink()
    link.symlink_to("elsewhere")
    seen.append(run(folder)["contents"][str(folder)])
    module.rename(folder / "sub/other.py")
    seen.append(run(folder)["contents"][str(folder)])
    assert len(set(seen)) == 5
