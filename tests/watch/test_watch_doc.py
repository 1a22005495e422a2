"""docs/watch.md: its commands run, and its tables are what the code does."""

import os
import re
import signal
import subprocess
from pathlib import Path
from typing import get_args

from tests.serving import COMMAND, ROOT
from tests.watch.stood_in import StoodIn
from tetraspark.site.watch import OnWedge
from tetraspark.watch import act, findings, watch

PAGE = (ROOT / "docs" / "watch.md").read_text()
BLOCKS = re.findall(r"(?ms)^```sh\n(.*?)^```", PAGE)
SAYS = ("stood-in: ready - every rank is up", '"state": "ready"', "watch: none")


def test_the_commands_of_the_page_work(tmp_path: Path) -> None:
    line = StoodIn(tmp_path)
    env = os.environ | {
        "PATH": f"{COMMAND.parent}:{os.environ['PATH']}",
        "TETRASPARK_SITE": str(line.site),
        "TETRASPARK_STATE": str(line.state),
        "COLUMNS": "200",
    }
    assert len(BLOCKS) == len(SAYS)
    with line.served():
        for block, text in zip(BLOCKS, SAYS, strict=True):
            # A shell that runs tests in the background has switched Ctrl-C off for them.
            argv = ["env", "--default-signal=INT", "bash", "-euc", f"exec {block}"]
            with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True) as running:
                assert running.stdout is not None
                if "--interval" in block:
                    assert text in running.stdout.readline()
                    running.send_signal(signal.SIGINT)
                said = running.communicate(timeout=300)[0]
                assert running.returncode == 0, said
                assert text in said or "--interval" in block


def rows(section: str) -> list[str]:
    text = re.search(rf"(?ms)^## {section}\n(.*?)(?=^## |\Z)", PAGE)
    assert text is not None
    return re.findall(r"(?m)^\| `([\w.-]+)` \|", text[1])


def test_the_page_names_every_finding_state_and_act() -> None:
    source = "".join(Path(module.__file__ or "").read_text() for module in (act, findings, watch))
    found = set(re.findall(r'"([A-Z]{4,}\.[A-Z_]+)"', source))
    assert sorted(found) == sorted(rows("Findings"))
    assert set(rows("States")) == {"ready", "degraded", "wedged", "starting", "down"}
    assert tuple(rows("On a wedge, and when ranks end")[1:]) == get_args(OnWedge)


def test_the_page_gives_the_numbers_of_the_code() -> None:
    assert findings.LATE_RATIO == 4
    assert "four times as often as all others" in PAGE
