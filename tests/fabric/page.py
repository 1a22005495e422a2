"""Commands of a page, run as its reader would."""

import os
import subprocess
from pathlib import Path

from tests.serving import COMMAND


def run(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a line of a page in a folder."""
    return subprocess.run(
        ["bash", "-euc", line],
        cwd=folder,
        env=os.environ | {"PATH": f"{COMMAND.parent}:/usr/bin:/bin", "COLUMNS": "160"},
        capture_output=True,
        text=True,
        check=False,
    )
