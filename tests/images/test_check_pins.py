"""Pins and hooks together: the wheel of the engine is looked into, and nothing of it is run."""

import io
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tetraspark.engine.hooks import TARGETS
from tetraspark.engine.tree import package_root
from tetraspark.errors import RunError
from tetraspark.images.cache import Cache
from tetraspark.images.check_pins import PinCheck, check_pins, drift_problems
from tetraspark.images.fetch import Fetched, describe
from tetraspark.images.manifest import Manifest, Wheel

NAME = "sglang-0.5.23-py3-none-any.whl"


def engine_files() -> dict[str, str]:
    """Return the files of the installed engine that the plugin touches."""
    root = package_root("sglang")
    assert root is not None
    files = {}
    for target in TARGETS:
        parts = target.path.split(".")[1:]
        for length in range(len(parts), 0, -1):
            stem = root.joinpath(*parts[:length])
            for path in (stem.with_suffix(".py"), stem / "__init__.py"):
                if path.is_file():
                    files[f"sglang/{path.relative_to(root)}"] = path.read_text(encoding="utf-8")
    return files


def pinned(cache: Cache, content: bytes) -> Manifest:
    row = Wheel(
        name="sglang",
        version="0.5.23",
        url=f"https://files.example/{NAME}",
        sha256=cache.add(content),
        licence="Apache-2.0",
        recipes=("release",),
    )
    return Manifest(wheel=(row,))


def zipped(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as wheel:
        wheel.writestr("sglang-0.5.23.dist-info/METADATA", "Name: sglang\nVersion: 0.5.23\n")
        for name, text in files.items():
            wheel.writestr(name, text)
    return buffer.getvalue()


def check(tmp_path: Path, content: bytes) -> PinCheck:
    cache = Cache(tmp_path)
    manifest = pinned(cache, content)

    def bring(rows: object) -> list[Fetched]:
        return [describe(row, "present") for row in manifest.downloads]

    return check_pins(cache, manifest, "release", bring)


def test_the_engine_that_the_hooks_were_written_for(tmp_path: Path) -> None:
    assert distribution("sglang").version == "0.5.23"
    found = check(tmp_path, zipped(engine_files()))
    assert found.drifted == ()
    assert len(found.findings) == len(TARGETS)
    assert [(one.component, one.state) for one in found.files] == [("sglang-0.5.23", "present")]


def test_a_pin_whose_engine_has_changed(tmp_path: Path) -> None:
    files = engine_files()
    name = next(name for name in files if name.endswith("managers/scheduler.py"))
    files[name] = files[name].replace("def __init__(", "def __init__( ", 1)
    del files[next(name for name in files if name.endswith("parallel_state.py"))]
    found = check(tmp_path, zipped(files))
    assert {one.verdict for one in found.drifted} >= {"missing"}
    problems = drift_problems(found)
    assert len(problems) == len(found.drifted)
    assert any("GroupCoordinator.all_reduce" in problem.where for problem in problems)


def test_a_file_that_is_no_wheel(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no zip archive"):
        check(tmp_path, b"not a wheel")


def test_a_recipe_without_an_engines_wheel_has_no_hooks_to_check(tmp_path: Path) -> None:
    found = check_pins(Cache(tmp_path), Manifest(), "base", lambda rows: [])
    assert (found.files, found.findings) == ((), ())
