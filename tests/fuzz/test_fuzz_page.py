"""docs/fuzz.md: its commands run."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "fuzz.md").read_text()


def test_its_commands_are_of_this_folder_and_the_longer_run_runs() -> None:
    commands = re.findall(r"(?m)^python (-m .*)$", PAGE)
    assert commands == ["-m pytest tests/fuzz", "-m tests.fuzz.run --minutes 10"]
    argv = [sys.executable, *commands[1].replace("10", "0").split()]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "1 runs of 200 examples" in done.stdout
