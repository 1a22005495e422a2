"""Output that cannot be written, and text that must not reach a terminal raw."""

import subprocess

import pytest

from tests.serving import COMMAND, ROOT
from tetraspark.cli.output import shown

PLAN = f"'{COMMAND}' plan --site '{ROOT}/sites/local.toml'"


def shell(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("flag", ["", " --json"])
def test_a_closed_output_is_told(flag: str) -> None:
    done = shell(f"{PLAN}{flag} >&-")
    assert done.returncode == 1
    assert "error: output" in done.stderr and "closed" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("flag", [" --explain", " --json"])
def test_a_reader_that_leaves_is_no_failure_of_ours(flag: str) -> None:
    done = shell(f"{PLAN}{flag} | true; echo ${{PIPESTATUS[0]}}")
    assert done.stdout.strip() == "141"
    assert done.stderr == ""


def test_a_full_disk_is_told_with_what_to_look_at() -> None:
    done = shell(f"{PLAN} --json >/dev/full")
    assert done.returncode == 1
    assert "No space left on device" in done.stderr and "fix:" in done.stderr


def test_control_characters_are_shown_as_such() -> None:
    assert shown("a\x1b[31mb\x07\x9bc\n\td") == "a\\x1b[31mb\\x07\\x9bc\n\td"
    assert shown("é ✓ 漢") == "é ✓ 漢"


def test_a_lone_surrogate_is_shown_as_such() -> None:
    assert shown("a\ud800b") == "a\\ud800b"
