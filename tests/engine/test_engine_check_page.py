"""docs/engine-check.md: each of its commands is run, and what it says of verdicts and codes."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.engine.memory_tree import INSTALLED, file_of
from tests.engine.test_released import CACHE
from tetraspark.engine.check import check_engine
from tetraspark.engine.hooks import TARGETS
from tetraspark.engine.pins import PINS, Pin, read_pins
from tetraspark.engine.tree import open_tree

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "engine-check.md").read_text()
BLOCKS = re.findall(r"(?ms)^```sh\n(.*?)^```", PAGE)
COMMAND = Path(sys.executable).with_name("tetraspark")
WHEEL = "sglang-0.5.23-py3-none-any.whl"


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the parts of the repository that the page's commands name."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "scripts").symlink_to(ROOT / "scripts")
    (folder / "src").symlink_to(ROOT / "src")
    return folder


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_of_the_page_runs(clone: Path, block: str) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = os.environ | {
        "PATH": path,
        "PIP_FIND_LINKS": f"{CACHE} {os.environ.get('PIP_FIND_LINKS', '')}",
    }
    result = subprocess.run(
        ["bash", "-euc", block], cwd=clone, env=env, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    if "--json" in block:
        text = result.stdout[result.stdout.index("\n{") :]
        assert json.loads(text)["ok"] is True
    elif "engine check" in block:
        counts = f"no drift: targets {len(TARGETS)} found; pins {len(PINS)} same"
        assert result.stdout.splitlines()[-1] == counts
        assert re.sub(r"\d+", "N", counts) in re.sub(r"\d+", "N", PAGE)


def test_the_page_has_the_commands_it_is_about() -> None:
    assert len(BLOCKS) == 4


def run(*words: str) -> subprocess.CompletedProcess[str]:
    argv = [str(COMMAND), "engine", "check", *words]
    env = os.environ | {"COLUMNS": "200"}
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=False)


def wheel(folder: Path, texts: dict[str, str], metadata: str) -> Path:
    with zipfile.ZipFile(folder / WHEEL, "w") as archive:
        archive.writestr("sglang-0.5.23.dist-info/METADATA", metadata)
        for file, text in texts.items():
            archive.writestr(f"sglang/{file}", text)
    return folder / WHEEL


@pytest.fixture
def texts() -> dict[str, str]:
    """The installed engine's files that hold a target."""
    return {file_of(one): INSTALLED.read(file_of(one)) or "" for one in TARGETS}


METADATA = INSTALLED.metadata() or ""


def test_a_wheel_of_the_files_that_matter_has_not_drifted(
    tmp_path: Path, texts: dict[str, str]
) -> None:
    found = check_engine(open_tree(wheel(tmp_path, texts, METADATA)))
    assert (found.ok, found.version) == (True, "0.5.23")
    assert {one.verdict for one in found.findings} == {"found"}


def test_each_verdict_and_its_row(tmp_path: Path, texts: dict[str, str]) -> None:
    texts["srt/auth.py"] = texts.pop("srt/utils/auth.py")
    state = "srt/distributed/parallel_state.py"
    texts[state] = texts[state].replace("def get_tp_group(", "def get_the_tp_group(")
    texts["srt/managers/overlap_utils.py"] += "\n\nclass FutureMap:\n"
    texts["srt/managers/overlap_utils.py"] += "    def resolve_seq_lens_cpu(self): ...\n"
    file = str(wheel(tmp_path, texts, METADATA))
    result = run("--sglang", file, "--json")
    found = json.loads(result.stdout)
    rows = {one["target"].rsplit(".", 1)[1]: one for one in found["targets"]}
    assert result.returncode == 1 and found["ok"] is False
    assert rows["get_tp_group"]["verdict"] == "missing"
    assert rows["resolve_seq_lens_cpu"]["verdict"] == "changed"
    moved = rows["add_api_key_middleware"]
    assert moved["verdict"] == "moved"
    assert moved["places"] == ["sglang.srt.auth.add_api_key_middleware"]
    assert moved["use"] == "called" and moved["adapter"] == "src/tetraspark/engine/api_key.py"
    assert rows["register"]["verdict"] == "found"

    short, long = run("--sglang", file), run("--sglang", file, "--all")
    assert (short.returncode, long.returncode) == (1, 1)
    for text in ("missing", "called", "src/tetraspark/engine/api_key.py", "its source is the same"):
        assert text in short.stdout
    assert f"{len(TARGETS) - 3} found, 1 moved, 1 changed, 1 missing; " in short.stdout
    assert "hook_registry" not in short.stdout and "hook_registry" in long.stdout


def test_a_pin_that_differs_is_drift_and_one_that_cannot_be_told_is_not(
    tmp_path: Path, texts: dict[str, str]
) -> None:
    other = METADATA.replace("torch==2.14.1", "torch==2.15.0")
    found = check_engine(open_tree(wheel(tmp_path, texts, other)))
    assert not found.ok
    assert Pin("torch", "2.14.1", "2.15.0") in found.pins
    for file, text in ({"__init__.py": ""} | texts).items():
        target = tmp_path / "python" / "sglang" / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    found = check_engine(open_tree(tmp_path))
    assert found.ok and found.version == ""
    assert {one.verdict for one in found.pins} == {"unknown"}


def test_a_pin_is_read_as_the_wheel_writes_it() -> None:
    lines = "flashinfer_python[cu13]==0.7.2", "Torch (==2.14.1) ; python_version > '3'"
    more = "sgl-deep-gemm>=0.2", "sglang[all]==9; extra == 'test'", "sgl-flash-mla"
    text = "Version: 0.5.23\n" + "".join(f"Requires-Dist: {one}\n" for one in (*lines, *more))
    found = {one.package: (one.asked, one.verdict) for one in read_pins(text)}
    assert found == {
        "sglang": ("0.5.23", "same"),
        "flashinfer-python": ("0.7.2", "same"),
        "sgl-deep-gemm": (">=0.2", "differs"),
        "sgl-flash-mla": ("any version", "differs"),
        "sglang-kernel": ("not required", "differs"),
        "torch": ("2.14.1", "same"),
    }


@pytest.mark.parametrize(
    ("make", "seen"),
    [
        (lambda folder: folder / "absent.whl", "no such file"),
        (lambda folder: folder, "a folder without sglang"),
        (lambda folder: shutil.copy(__file__, folder / WHEEL), "no zip archive"),
    ],
)
def test_what_is_no_engine_is_bad_usage(tmp_path: Path, make: Any, seen: str) -> None:
    result = run("--sglang", str(make(tmp_path)), "--json")
    assert result.returncode == 2
    (problem,) = json.loads(result.stdout)["problems"]
    assert seen in problem["seen"] and problem["wanted"] and problem["fix"]
    assert "Traceback" not in result.stderr
