"""What ranks print, shown to people: nothing of it commands their terminal."""

import json
from pathlib import Path

import pytest

from tests.serving import Command, write_site

LINE = "\x1b[31mFATAL \x1b]0;owned\x07"


@pytest.fixture
def line(tmp_path: Path) -> Command:
    """A line with one run, whose rank 1 has printed control characters."""
    made = Command(write_site(tmp_path, "said"), tmp_path / "state")
    run = tmp_path / "state" / "said" / "20260101-000000-000000"
    run.mkdir(parents=True)
    plan = made.json("plan")
    (run / "plan.json").write_text(json.dumps(plan))
    (run / "state.json").write_text(json.dumps({"phase": "ready"}))
    (run / "rank1.log").write_text(f"{LINE}\n")
    return made


def test_control_characters_are_written_out(line: Command) -> None:
    result = line.run("logs", "1")
    assert result.returncode == 0, result.stderr
    assert result.stdout == "\\x1b[31mFATAL \\x1b]0;owned\\x07\n"


def test_a_program_gets_the_text_as_it_is(line: Command) -> None:
    assert json.loads(line.run("logs", "1", "--json").stdout)["text"] == LINE
