"""The page on weights: its checks exist, its site loads, the fleet's tests run its commands."""

import ast
import re
import shlex
from pathlib import Path

from tests.serving import ROOT
from tests.weights.fleets import fleet_site
from tetraspark.weights.place import place_of

PAGE = (ROOT / "docs/weights.md").read_text()
SOURCES = ROOT / "src/tetraspark/weights"


def test_every_command_of_the_page_is_run_on_the_fleet() -> None:
    blocks = re.findall(r"(?ms)^```sh\n(.*?)^```", PAGE)
    commands = [shlex.split(line) for block in blocks for line in block.splitlines()]
    assert all(words[:2] == ["tetraspark", "weights"] for words in commands)
    calls = (
        node.args
        for node in ast.walk(ast.parse((ROOT / "tests/fleet/test_weights.py").read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "run"
    )
    ran = [[one.value for one in args if isinstance(one, ast.Constant)] for args in calls]
    assert [words for words in commands if words[2:] not in ran] == []


def test_every_check_of_the_page_is_one_and_the_other_way_round() -> None:
    named = set(re.findall(r"^\| `([A-Z]+\.[A-Z_]+)` \|", PAGE, re.MULTILINE))
    words = {
        node.value
        for path in Path(SOURCES).glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    made = {word for word in words if re.fullmatch(r"(CHECKPOINT|WEIGHTS)\.[A-Z_]+", word)}
    assert named == made


def test_the_section_of_the_page_is_that_of_a_site() -> None:
    (section,) = re.findall(r"```toml\n\[weights\]\n(.*?)```", PAGE, re.DOTALL)
    assert place_of(fleet_site(section)).holders == ("spark1",)
