"""docs/operations.md and docs/security.md, command by command, on a served line."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.serving import COMMAND, ROOT, Command, without_make

BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGE = (ROOT / "docs" / "operations.md").read_text()
SECURITY = (ROOT / "docs" / "security.md").read_text()
BLOCKS: list[str] = BLOCK.findall(PAGE)
SAYS = {
    "tetraspark units": ["# tetraspark-served.service", "wrote units/tetraspark-served-watch"],
    "tetraspark status": ["line served: ready"],
    "tetraspark receipts list": [" receipt ", "proof: asked 'What is 19 + 23?', answered '42'"],
}
ELSEWHERE = ("tetraspark soak", "tetraspark receipts diff", "good=")
"""Blocks with a test of their own; the last is run by test_serving_again.py."""


def run_block(line: Command, block: str) -> subprocess.CompletedProcess[str]:
    """Run a block of the page as its reader would, in the folder of the site."""
    path = f"{COMMAND.parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-euc", block],
        cwd=line.site.parent,
        env={**os.environ, **line.env, "TETRASPARK_SITE": str(line.site), "PATH": path},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def block_of(mark: str) -> str:
    return next(one for one in BLOCKS if one.startswith(mark))


def test_every_block_of_the_page_is_run() -> None:
    marks = (*SAYS, *ELSEWHERE)
    assert len(BLOCKS) == len(marks)
    assert all(block_of(mark) for mark in marks)


@pytest.mark.engine
@pytest.mark.parametrize("mark", SAYS)
def test_a_block_of_the_page_does_what_it_says(line: Command, served: Any, mark: str) -> None:
    done = run_block(line, block_of(mark))
    assert done.returncode == 0, done.stderr
    for text in SAYS[mark]:
        assert text in done.stdout, done.stdout


@pytest.mark.engine
def test_the_short_soak_of_the_page_has_no_fault(line: Command, served: Any) -> None:
    done = run_block(line, block_of("tetraspark soak"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d+ waves, \d+ requests, \d", done.stdout)


@pytest.mark.engine
def test_the_first_receipt_has_none_to_differ_from(line: Command, served: Any) -> None:
    done = run_block(line, block_of("tetraspark receipts diff"))
    assert done.returncode == 2
    assert f"{served['run']} is the first one" in done.stderr


def test_the_length_of_a_soak_is_given_once(tmp_path: Path) -> None:
    argv = [
        str(COMMAND),
        "soak",
        "--hours",
        "1",
        "--minutes",
        "3",
        "--url",
        "http://127.0.0.1:9/v1",
    ]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--minutes\n  seen:   3, beside --hours 1" in done.stderr


def test_make_soak_runs_what_the_page_says() -> None:
    make = ["make", "-n", "soak", f"PYTHON={sys.executable}"]
    env = without_make()
    done = subprocess.run(make, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    command = next(one for one in PAGE.splitlines() if "--hours 1 " in one)
    assert command.removeprefix("tetraspark ") in done.stdout.splitlines()[-1].replace("'", "")


def test_the_commands_of_the_security_page(tmp_path: Path) -> None:
    """The audit is run by tests/test_audit.py; here the new key is one that a line takes."""
    assert BLOCK.findall(SECURITY) == ["python scripts/audit.py\n"]
    lines = [one for one in SECURITY.splitlines() if one.endswith("local.key")]
    subprocess.run(["bash", "-euc", "\n".join(lines)], cwd=tmp_path, check=True)
    key = tmp_path / "local.key"
    assert key.stat().st_mode & 0o777 == 0o600
    assert re.fullmatch(r"sk-[0-9a-f]{48}\n", key.read_text())
