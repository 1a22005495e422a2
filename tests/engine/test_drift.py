import hashlib
from pathlib import Path

import pytest

from tetraspark.engine.drift import Target, inspect_all, inspect_target, package_root, source_of
from tetraspark.engine.hooks import HOOKS, TARGETS

MODULE = '''
"""A module of an engine."""
import functools

class Group:
    @property
    def world(self):
        return 4

    def all_reduce(self, x):
        return x   \n

@functools.cache
def helper():
    return 1
'''


@pytest.fixture
def package(tmp_path: Path) -> Path:
    root = tmp_path / "eng"
    (root / "srt").mkdir(parents=True)
    (root / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (root / "srt" / "group.py").write_text(MODULE)
    return root


def digest(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()


METHOD = "def all_reduce(self, x):\n    return x\n"


def test_a_method_is_found_by_its_dedented_source_without_import(package: Path) -> None:
    target = Target("eng.srt.group.Group.all_reduce", (digest(METHOD),), "adapter.py")
    finding = inspect_target(package, target)
    assert (finding.verdict, finding.sha256) == ("found", digest(METHOD))


def test_decorators_belong_to_the_source() -> None:
    assert source_of(MODULE, ["helper"]) == "@functools.cache\ndef helper():\n    return 1\n"
    assert source_of(MODULE, ["Group", "world"]) == ("@property\ndef world(self):\n    return 4\n")


def test_any_edit_of_the_body_is_a_change_that_names_the_adapter(package: Path) -> None:
    file = package / "srt" / "group.py"
    file.write_text(file.read_text().replace("return x", "return x + 0"))
    target = Target("eng.srt.group.Group.all_reduce", (digest(METHOD),), "src/adapter.py")
    finding = inspect_target(package, target)
    assert finding.verdict == "changed"
    assert "re-check src/adapter.py" in str(finding)
    assert finding.sha256[:12] in str(finding)


def test_an_edit_elsewhere_in_the_file_is_no_change(package: Path) -> None:
    file = package / "srt" / "group.py"
    file.write_text("# a new first line\n" + file.read_text().replace("return 4", "return 8"))
    target = Target("eng.srt.group.Group.all_reduce", (digest(METHOD),), "adapter.py")
    assert inspect_target(package, target).verdict == "found"


@pytest.mark.parametrize(
    "path", ["eng.srt.group.Group.gone", "eng.srt.group.Gone.all_reduce", "eng.srt.gone.x", "eng.x"]
)
def test_what_is_not_there_is_missing(package: Path, path: str) -> None:
    finding = inspect_target(package, Target(path, ("0" * 64,), "adapter.py"))
    assert finding.verdict == "missing"
    assert path in str(finding)


def test_a_package_that_is_not_installed_has_no_root() -> None:
    assert package_root("tetraspark_no_such_engine") is None


def test_every_target_of_ours_is_in_the_installed_engine() -> None:
    root = package_root("sglang")
    assert root is not None
    verdicts = {finding.target.path: str(finding.verdict) for finding in inspect_all(root, TARGETS)}
    assert verdicts == {target.path: "found" for target in TARGETS}


def test_hook_functions_exist_in_the_file_their_target_names() -> None:
    for hook in HOOKS:
        module, function = hook.function.split(":")
        assert hook.target.adapter == "src/" + module.replace(".", "/") + ".py"
        source = Path(__file__).parents[2] / hook.target.adapter
        assert f"def {function}(" in source.read_text()
