"""What a unit's journal gets: one line a message, its priority, no colours."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.serving import write_site
from tetraspark.cli.journal import entry, is_journal, problem_entry
from tetraspark.errors import Problem

LEVEL = re.compile(r"<[0-7]>")
PROGRAM = """
from tetraspark.cli.output import err, out, print_news, print_problems
from tetraspark.errors import Problem
out.print("[bold red]ready[/]")
print_news("phase load\\x1b[31m\\nsecond line")
problem = Problem("spark1", "a\\nb\\x07", "c", "d")
print_problems([problem])
print_problems([problem], "warning", "yellow")
"""


def said(program: str, *words: str, named: str | None = None) -> list[str]:
    """Return the lines of a program whose output is a socket, as a unit's is."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        state = os.fstat(theirs.fileno())
        journal = f"{state.st_dev}:{state.st_ino}" if named is None else named
        env = {**os.environ, "JOURNAL_STREAM": journal, "FORCE_COLOR": "1"}
        argv = [sys.executable, "-c", program, *words]
        subprocess.run(
            argv, env=env, stdout=theirs.fileno(), stderr=theirs.fileno(), timeout=120, check=False
        )
        theirs.shutdown(socket.SHUT_WR)
        with ours.makefile(errors="surrogateescape") as file:
            return file.read().splitlines()


def test_each_message_is_one_line_with_its_priority_and_no_colour() -> None:
    assert said(PROGRAM) == [
        "ready",
        "<6>phase load second line",
        "<3>error: spark1: a b; wanted: c; fix: d",
        "<4>warning: spark1: a b; wanted: c; fix: d",
    ]


def test_a_refusal_of_the_command_is_an_error_of_the_journal(tmp_path: Path) -> None:
    site = write_site(tmp_path, "local", {"tp = 4": "tp = 5"})
    program = "from tetraspark.cli.main import run; run()"
    lines = said(program, "serve", "--dry-run", "--site", str(site))
    assert lines and all(line.startswith("<3>error: ") for line in lines)
    assert any(f"{site}:" in line for line in lines)


def test_elsewhere_nothing_is_said_for_a_journal() -> None:
    lines = said(PROGRAM, named="1:2")
    assert not [line for line in lines if LEVEL.match(line)]
    assert any("seen:" in line for line in lines)


def test_a_file_or_a_closed_stream_is_no_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "log").open("w") as file:
        state = os.fstat(file.fileno())
        monkeypatch.setenv("JOURNAL_STREAM", f"{state.st_dev}:{state.st_ino}")
        assert not is_journal(file)
    assert not is_journal(file)
    assert not is_journal(None)


@pytest.mark.parametrize("text", ["a\x1b[31mb\x1b[0m", "a\r\nb", "\x00a\tb", "a\udc80b"])
def test_no_text_makes_two_lines_or_moves_a_terminal(text: str) -> None:
    made = entry(text)
    assert made.isprintable() and made.startswith("<6>a")
    assert problem_entry(Problem(text, text, text), "found").startswith("<5>found: a")
