"""Whoever watches a start sees every look at it, and can end it."""

from pathlib import Path

import pytest

from tests.line.test_effective import Served
from tetraspark.errors import Problem, RunError
from tetraspark.fleet.process import labelled
from tetraspark.line.progress import Look
from tetraspark.line.serve import serve


def test_a_watcher_sees_phases_states_and_lines_and_can_end_the_start(tmp_path: Path) -> None:
    line = Served(tmp_path)
    line.behaviour.write_text('{"pause": 0.3}')
    seen: list[Look] = []

    def watch(look: Look) -> None:
        seen.append(look)
        if look.phase == "load":
            raise RunError(Problem("node0", "no memory left", "room", "free some"))

    with pytest.raises(RunError, match="no memory left"):
        serve(
            line.loaded,
            line.plan,
            None,
            line.runner,
            line.store,
            False,
            lambda progress: None,
            watchers=[watch],
        )
    assert {look.phase for look in seen} == {"import", "load"}
    assert all([one.state for one in look.states] == ["running"] for look in seen)
    assert any("Load weight begin" in line.text for look in seen for line in look.lines)
    assert labelled(line.store.root) == []
