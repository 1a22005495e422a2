import ast
import hashlib
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.memory_tree import INSTALLED, MemoryTree, file_of, file_text
from tetraspark.engine.drift import Target, inspect_all, inspect_target
from tetraspark.engine.hooks import HOOKS, TARGETS
from tetraspark.engine.tree import package_root

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
GROUP = "sglang.srt.group.Group.all_reduce"
METHOD = "def all_reduce(self, x):\n    return x\n"
every_target = pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.path)


def digest(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()


def engine(text: str = MODULE, **more: str) -> MemoryTree:
    return MemoryTree({"srt/group.py": text} | {f"srt/{k}.py": v for k, v in more.items()})


def target(path: str = GROUP, source: str = METHOD) -> Target:
    return Target(path, (digest(source),), "src/adapter.py")


def test_a_method_is_found_by_its_dedented_source() -> None:
    finding = inspect_target(engine(), target())
    assert (finding.verdict, finding.sha256) == ("found", digest(METHOD))


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("sglang.srt.group.helper", "@functools.cache\ndef helper():\n    return 1\n"),
        ("sglang.srt.group.Group.world", "@property\ndef world(self):\n    return 4\n"),
    ],
)
def test_decorators_belong_to_the_source(path: str, source: str) -> None:
    assert inspect_target(engine(), target(path, source)).verdict == "found"


def test_any_edit_of_the_body_is_a_change_that_names_the_adapter() -> None:
    finding = inspect_target(engine(MODULE.replace("return x", "return x + 0")), target())
    assert finding.verdict == "changed"
    assert "re-check src/adapter.py" in str(finding)
    assert finding.sha256[:12] in str(finding)


def test_an_edit_elsewhere_in_the_file_is_no_change() -> None:
    text = "# a new first line\n" + MODULE.replace("return 4", "return 8")
    assert inspect_target(engine(text), target()).verdict == "found"


@pytest.mark.parametrize("ends", ["\r\n", "\r"])
def test_line_ends_of_another_system_are_no_change(ends: str) -> None:
    assert inspect_target(engine(MODULE.replace("\n", ends)), target()).verdict == "found"


@pytest.mark.parametrize("character", ["\f", "\x1c", "\u2028"])
def test_a_line_is_what_python_counts_as_one(character: str) -> None:
    text = f"TEXT = '''{character}'''\n" + MODULE
    assert inspect_target(engine(text), target()).verdict == "found"


def test_the_last_of_two_definitions_is_the_one_that_counts() -> None:
    text = MODULE + "\ndef helper():\n    return 2\n"
    first = target("sglang.srt.group.helper", "@functools.cache\ndef helper():\n    return 1\n")
    assert inspect_target(engine(text), first).verdict == "changed"


@pytest.mark.parametrize("text", ["def all_reduce(:", "a\0b", ""])
def test_what_is_no_python_defines_nothing(text: str) -> None:
    assert inspect_target(engine(text), target()).verdict == "missing"


@pytest.mark.parametrize(
    "path", ["group.Group.gone", "group.Gone.reduce", "gone.x", "gone.Group.x"]
)
def test_what_is_not_there_is_missing(path: str) -> None:
    finding = inspect_target(engine(), target(f"sglang.srt.{path}"))
    assert finding.verdict == "missing"
    assert path in str(finding)


def test_the_same_source_elsewhere_has_moved_even_to_another_class() -> None:
    other = "class Ranks:\n" + "".join(f"    {line}\n" for line in METHOD.splitlines())
    finding = inspect_target(engine("", ranks=other), target())
    assert (finding.verdict, finding.places) == ("moved", ("sglang.srt.ranks.Ranks.all_reduce",))
    assert "its source is the same" in str(finding)


def test_the_same_name_elsewhere_has_moved_and_its_change_is_told() -> None:
    moved = MODULE.replace("return x", "return x + 0")
    finding = inspect_target(engine("", ranks=moved), target())
    assert (finding.verdict, finding.places) == ("moved", ("sglang.srt.ranks.Group.all_reduce",))
    assert f"source {finding.sha256[:12]}, written for" in str(finding)


def test_a_function_of_that_name_alone_is_not_the_method() -> None:
    other = METHOD.replace("return x", "return x + 0")
    assert inspect_target(engine(other), target()).verdict == "missing"


def test_copies_in_the_wheels_other_products_are_no_new_place() -> None:
    tree = MemoryTree({"multimodal_gen/group.py": MODULE, "test/group.py": MODULE})
    assert inspect_target(tree, target()).verdict == "missing"


def test_a_package_that_is_not_installed_has_no_root() -> None:
    assert package_root("tetraspark_no_such_engine") is None


def test_every_target_of_ours_is_in_the_installed_engine() -> None:
    findings = inspect_all(INSTALLED, TARGETS)
    assert [str(finding) for finding in findings if finding.verdict != "found"] == []
    assert len(findings) == len(TARGETS) == len({target.path for target in TARGETS})


@every_target
@given(data=st.data())
@settings(max_examples=4, deadline=None, database=None)
def test_one_changed_character_flips_the_verdict(target: Target, data: st.DataObject) -> None:
    text = file_text(target)
    first, last = span(text, target.names)
    places = [i for i in range(first, last) if not text[i].isspace()]
    place = data.draw(st.sampled_from(places))
    new = data.draw(st.sampled_from([one for one in "aZ0_#)" if one != text[place]]))
    tree = MemoryTree({file_of(target): text[:place] + new + text[place + 1 :]})
    assert inspect_target(tree, target).verdict != "found"


@every_target
def test_a_renamed_definition_is_missing(target: Target) -> None:
    text = file_text(target)
    first, last = span(text, target.names)
    name = re.compile(rf"\b(def|class)\s+{target.names[-1]}\b")
    renamed, count = name.subn(rf"\1 {target.names[-1]}_renamed", text[first:last], count=1)
    assert count == 1
    tree = MemoryTree({file_of(target): text[:first] + renamed + text[last:]})
    assert inspect_target(tree, target).verdict == "missing"


@every_target
def test_a_definition_in_another_file_has_moved(target: Target) -> None:
    tree = MemoryTree({file_of(target): "", "srt/new_home.py": file_text(target)})
    finding = inspect_target(tree, target)
    place = ".".join(("sglang.srt.new_home", *target.names))
    assert (finding.verdict, finding.places) == ("moved", (place,))
    assert finding.sha256 in target.accepted


def span(text: str, names: tuple[str, ...]) -> tuple[int, int]:
    """Return where the text of a definition begins and ends."""
    body = ast.parse(text).body
    node: ast.stmt | None = None
    for name in names:
        node = [one for one in body if getattr(one, "name", None) == name][-1]
        body = getattr(node, "body", [])
    assert node is not None and node.end_lineno is not None
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    decorators = getattr(node, "decorator_list", [])
    return starts[min([node.lineno, *(one.lineno for one in decorators)]) - 1], starts[
        node.end_lineno
    ]


def test_hook_functions_exist_in_the_file_their_target_names() -> None:
    for hook in HOOKS:
        module, function = hook.function.split(":")
        assert hook.target.adapter == "src/" + module.replace(".", "/") + ".py"
        source = Path(__file__).parents[2] / hook.target.adapter
        assert f"def {function}(" in source.read_text()
