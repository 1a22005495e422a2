"""A folded accept keeps its values when the verify graph is replayed: the real classes, on CPU."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.engine.cpu_engine import STANDINS, python
from tetraspark.engine.hooks import FENCE, HOOKS

pytestmark = pytest.mark.engine
SCRIPT = Path(__file__).with_name("fenced.py")
ROOT = str(Path(__file__).parents[2])
TAKEN, OVERWRITTEN = 7, 9


@pytest.fixture(scope="module")
def lines() -> list[dict[str, Any]]:
    path = ":".join((STANDINS, ROOT, *filter(None, [os.environ.get("PYTHONPATH")])))
    result = python(str(SCRIPT), PYTHONPATH=path)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]


@pytest.fixture(scope="module")
def fenced(lines: list[dict[str, Any]]) -> dict[str, Any]:
    return lines[-1]


def numbers(values: Any) -> set[int]:
    return {values} if isinstance(values, int) else {n for one in values for n in numbers(one)}


def test_without_the_hooks_a_replay_overwrites_what_was_returned(
    lines: list[dict[str, Any]],
) -> None:
    assert lines[0]["patched"] == []
    assert [numbers(one) for one in lines[0]["before"]] == [{TAKEN}] * 3
    assert [numbers(one) for one in lines[0]["after"]] == [{OVERWRITTEN}] * 3


def test_with_the_hooks_every_path_keeps_its_values(fenced: dict[str, Any]) -> None:
    targets = [hook.target for hook in HOOKS]
    assert fenced["patched"] == sorted(one.path for one in targets if one.adapter == FENCE)
    assert fenced["type"] == "AcceptOuts"
    assert fenced["after"] == fenced["before"]
    assert [numbers(one) for one in fenced["after"]] == [{TAKEN}] * 3


def test_the_engine_still_knows_what_its_graph_has_published(fenced: dict[str, Any]) -> None:
    assert fenced["relayed"] is True


def test_eager_results_are_the_engines_own(fenced: dict[str, Any]) -> None:
    assert numbers(fenced["eager"]) == {2 * TAKEN}
    assert fenced["not taken"] is None


def test_the_first_copy_prints_a_receipt(lines: list[dict[str, Any]]) -> None:
    (receipt,) = lines[1:-1]
    wanted = {"tetraspark": "folded_fence", "graph": "verify", "requests": 3}
    assert wanted.items() <= receipt.items()
