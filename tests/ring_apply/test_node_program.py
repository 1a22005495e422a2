"""The node program as it is sent: whole, of the standard library alone, for an old Python too."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ring_apply.machines import plan_of
from tetraspark.errors import RunError
from tetraspark.fleet.command import NodeCommand, OnLine, Result
from tetraspark.ring import inside
from tetraspark.ring.inside.kind import OWNER
from tetraspark.ring.inside.rule import RuleObject
from tetraspark.ring.inside.rule_text import content_of
from tetraspark.ring.node_program import MODULES, PACKAGE, ask, script
from tetraspark.ring.route import PROTOCOL
from tetraspark.ring.wanted import wanted

FOLDER = Path(inside.__file__).parent


def test_every_module_is_sent_after_what_it_imports() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == {"__init__", *MODULES}
    for number, name in enumerate(MODULES):
        tree = ast.parse((FOLDER / f"{name}.py").read_text(), feature_version=(3, 9))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                module = node.module or ""
                if module == PACKAGE:
                    assert {one.name for one in node.names} <= set(MODULES[:number]), name
                elif module.startswith("tetraspark"):
                    assert module.removeprefix(f"{PACKAGE}.") in MODULES[:number], (name, module)
                else:
                    assert module.split(".")[0] in sys.stdlib_module_names, (name, module)
            if isinstance(node, ast.Import):
                assert all(one.name in sys.stdlib_module_names for one in node.names), name


def test_it_runs_without_the_package() -> None:
    argv = ["/usr/bin/env", "-i", sys.executable, "-I", "-S", "-"]
    done = subprocess.run(
        argv, input=script({"verb": "abandon", "token": "x"}), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()[-500:]
    assert json.loads(done.stdout) == {"ok": True, "problems": []}


def test_marks_of_ours_are_the_plans() -> None:
    assert str(PROTOCOL) == OWNER


def test_a_rule_of_the_plan_is_the_rule_of_the_node() -> None:
    plan = plan_of()
    for one, planned in zip(wanted(plan), plan.nodes, strict=True):
        kinds = [thing["kind"] for thing in one.objects]
        assert kinds.count("rule") == len(planned.rules) == 2
        assert kinds.count("route") == kinds.count("neighbour") == 2
        assert kinds.count("link") == kinds.count("address") == 4
        assert kinds.count("marker") == len(planned.markers) == 2


# What iproute2 6.1 prints for such a rule, in its own words for an EtherType without a name.
SHOWN = """
{"protocol": "[34997]", "pref": 11, "kind": "flower", "chain": 0, "options": {"handle": 1,
 "keys": {"dst_mac": "02:00:00:00:01:02", "src_mac": "02:00:00:00:00:00"}, "skip_sw": true,
 "in_hw": true, "in_hw_count": 1, "actions": [
 {"order": 1, "kind": "pedit", "control_action": {"type": "pipe"}, "nkeys": 1, "keys": [
  {"htype": "eth", "offset": 12, "cmd": "set", "val": "8000000", "mask": "ffff"}]},
 {"order": 2, "kind": "pedit", "control_action": {"type": "pipe"}, "nkeys": 2, "keys": [
  {"htype": "eth", "offset": 0, "cmd": "set", "val": "2000000", "mask": "0"},
  {"htype": "eth", "offset": 4, "cmd": "set", "val": "2020000", "mask": "ffff"}]},
 {"order": 3, "kind": "mirred", "mirred_action": "redirect", "direction": "egress",
  "to_dev": "enp1s0f0np0", "control_action": {"type": "stolen"}}]}}
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("34997", "34998"),
        ('"2020000"', '"2030000"'),
        ('"8000000"', '"88b50000"'),
        ('"skip_sw": true', '"skip_sw": false'),
        ("enp1s0f0np0", "enp1s0f1np1"),
        ('"mirred_action": "redirect"', '"mirred_action": "mirror"'),
        ('"cmd": "set", "val": "8000000"', '"cmd": "add", "val": "8000000"'),
        ('"dst_mac"', '"vlan_id": 5, "dst_mac"'),
        ('"mask": "0"', '"mask": "ff"'),
    ],
)
def test_a_filter_is_read_by_all_that_it_does(old: str, new: str) -> None:
    rule = RuleObject(
        "enp1s0f1np1", 11, 1, 0x88B5, "02:00:00:00:00:00", "02:00:00:00:01:02", 0x0800,
        "02:00:00:00:02:02", "enp1s0f0np0",
    )  # fmt: skip
    assert content_of(json.loads(SHOWN)) == rule.content()
    assert old in SHOWN
    assert content_of(json.loads(SHOWN.replace(old, new, 1))) != rule.content()


class Answers:
    """Gives a node's answer, whatever is asked."""

    def __init__(self, *ended: Result) -> None:
        self.ended = ended[0]

    def run(self, node: str, command: NodeCommand, on_line: OnLine | None = None) -> Result:
        assert command.argv[:2] == ("sh", "-c") and command.stdin is not None
        return self.ended

    def copy(self, node: str, folder: Path, target: str, timeout: float) -> None:
        raise NotImplementedError

    def interrupt(self) -> None:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        (Result(1, "", "sudo: a password is required\n"), "sudo: a password is required"),
        (Result(127, "", "sh: 1: exec: python3: not found\n"), "python3: not found"),
        (Result(0, "[]", ""), "ended with 0"),
    ],
)
def test_a_node_without_root_or_python_is_told(ended: Result, said: str) -> None:
    with pytest.raises(RunError) as caught:
        ask(Answers(ended), "spark0", {"verb": "look"})
    (problem,) = caught.value.problems
    assert said in problem.seen and "sudo -n true" in problem.fix
