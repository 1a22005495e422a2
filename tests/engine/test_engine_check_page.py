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
        assert counts in PAGE


def test_the_page_has_the_commands_it_is_about() -> None:
    assert len(BLOCKS) == 4


def run(*words: str, columns: int = 200) -> subprocess.CompletedProcess[str]:
    argv = [str(COMMAND), "engine", "check", *words]
    env = os.environ | {"COLUMNS": str(columns)}
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


def asked(*requirements: str) -> dict[str, tuple[str, str]]:
    text = "Version: 0.5.23\n" + "".join(f"Requires-Dist: {one}\n" for one in requirements)
    return {one.package: (one.asked, one.verdict) for one in read_pins(text)}


@pytest.mark.parametrize("spec", ["== 2.14.1", " ==2.14.1 ", "( == 2.14.1 )", "=== 2.14.1"])
def test_blanks_in_a_pin_are_no_difference(spec: str) -> None:
    assert asked(f"torch{spec}")["torch"] == ("2.14.1", "same")


@pytest.mark.parametrize("extra", ["extra=='npu'", "'npu' == extra", 'extra  ==  "npu"'])
def test_a_pin_of_an_extra_is_not_the_engines(extra: str) -> None:
    found = asked(
        "torch==2.14.1", f"torch==2.5.0;{extra}", f"torch==1;python_version>'3'and {extra}"
    )
    assert found["torch"] == ("2.14.1", "same")


def test_the_word_extra_in_a_value_is_no_extra() -> None:
    assert asked("torch==2.14.1; platform_version != 'extra'")["torch"] == ("2.14.1", "same")


def test_several_pins_of_one_package_are_all_told() -> None:
    found = asked("torch==2.14.1; sys_platform=='linux'", "torch==2.5; sys_platform=='darwin'")
    assert found["torch"] == ("2.14.1, 2.5", "differs")


def test_nothing_that_a_wheel_says_reaches_the_terminal_raw(
    tmp_path: Path, texts: dict[str, str]
) -> None:
    texts["srt/\x1b]0;a.py"] = texts.pop("srt/utils/auth.py")
    evil = METADATA.replace("Version: 0.5.23", "Version: \x1b[31m" + "9" * 5000)
    evil = evil.replace("torch==2.14.1", "torch==\x9b2J")
    file = str(wheel(tmp_path, texts, evil))
    result = run("--sglang", file, "--all")
    assert result.returncode == 1
    assert all(char.isprintable() or char == "\n" for char in result.stdout)
    assert max(map(len, result.stdout.splitlines())) < 400
    for text in (r"\x1b[31m999", r"\x9b2J", r"sglang.srt.\x1b]0;a.add_api_key_middleware"):
        assert text in result.stdout


def test_the_name_of_every_target_is_whole_on_a_narrow_terminal() -> None:
    lines = run("--all", columns=80).stdout.splitlines()
    shown = [line.split()[-1] for line in lines if line.startswith("found ")]
    assert shown == [target.path for target in TARGETS]


def damaged(folder: Path) -> Path:
    with zipfile.ZipFile(folder / WHEEL, "w") as archive:
        archive.writestr("sglang-0.5.23.dist-info/METADATA", METADATA)
    data = (folder / WHEEL).read_bytes()
    (folder / WHEEL).write_bytes(data.replace(b"Name: sglang", b"Name: sgl\0ng"))
    return folder / WHEEL


def pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


def variables(path: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, str(ROOT / "scripts/engine_variables.py"), "--sglang", path]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize(
    ("make", "seen"),
    [
        (damaged, "a damaged archive: sglang-0.5.23.dist-info/METADATA"),
        (pipe, "not a regular file"),
        (lambda folder: folder / ("n" * 300), "File name too long"),
        (lambda folder: "", "no path"),
        (lambda folder: folder / "absent.whl", "no such file"),
        (lambda folder: folder, "a folder without sglang"),
        (lambda folder: shutil.copy(__file__, folder / WHEEL), "no zip archive"),
    ],
)
def test_what_is_no_engine_is_bad_usage(tmp_path: Path, make: Any, seen: str) -> None:
    path = str(make(tmp_path))
    result = run("--sglang", path, "--json")
    assert result.returncode == 2
    (problem,) = json.loads(result.stdout)["problems"]
    assert seen in problem["seen"] and problem["wanted"] and problem["fix"]
    assert problem["where"] == (path or "--sglang") and "Traceback" not in result.stderr


@pytest.mark.parametrize("make", [damaged, lambda folder: folder / "nope", lambda folder: ""])
def test_the_table_of_variables_refuses_what_is_no_engine(tmp_path: Path, make: Any) -> None:
    result = variables(str(make(tmp_path)))
    assert (result.returncode, result.stdout) == (2, "")
    assert "wanted: " in result.stderr and "Traceback" not in result.stderr


@pytest.mark.parametrize(("text", "seen"), [(None, "no srt/environ.py"), ("def", "no Python")])
def test_the_table_of_variables_needs_their_declarations(
    tmp_path: Path, text: str | None, seen: str
) -> None:
    texts = {} if text is None else {"srt/environ.py": text}
    result = variables(str(wheel(tmp_path, texts, METADATA)))
    assert (result.returncode, result.stdout) == (2, "")
    assert seen in result.stderr
