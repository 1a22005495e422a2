"""docs/ring.md: its commands run as they are written, its figures are those of a plan."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ring.sparks import sparks
from tetraspark.ring.build import ring_plan
from tetraspark.ring.degraded import degraded_plans
from tetraspark.ring.options import BASES, RingOptions
from tetraspark.ring.requirement import LARGE_CAP, QUEUE_SIZE, SMALL_CAP
from tetraspark.ring.route import PROTOCOL
from tetraspark.ring.tag import BASE

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ring.md").read_text()
COMMANDS = [line for block in re.findall(r"(?ms)^```sh\n(.*?)^```", PAGE)
            for line in block.splitlines()]  # fmt: skip
SAYS = [
    "8 of them relayed",
    "24 of 24 paths delivered",
    "written: lost/cable-3.json",
    "spark1 > spark2 > spark3 > spark4",
    "without function spark2:enp1s0f0np0",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("page")
    (made / "sites").symlink_to(ROOT / "sites")
    (made / "bin").mkdir()
    command = made / "bin" / "tetraspark"
    code = "from tetraspark.cli.main import run; run()"
    command.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{code}' \"$@\"\n")
    command.chmod(0o755)
    return made


def test_the_commands_do_what_they_say_one_after_the_other(folder: Path) -> None:
    path = f"{folder}/bin:{os.environ['PATH']}"
    env = os.environ | {"PATH": path, "PYTHONPATH": f"{ROOT}/src", "COLUMNS": "160"}
    for command, says in zip(COMMANDS, SAYS, strict=True):
        argv = ["sh", "-euc", command]
        done = subprocess.run(
            argv, cwd=folder, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert says in done.stdout


def test_the_figures_of_the_page() -> None:
    for text in (f"{SMALL_CAP:,} bytes", f"{LARGE_CAP:,} bytes", f"`{BASE:#x}`",
                 f"protocol {PROTOCOL}", f"{QUEUE_SIZE} strides", *map(str, BASES)):  # fmt: skip
        assert text in PAGE
    whole = ring_plan(sparks())
    for one in degraded_plans(sparks(), whole, RingOptions()):
        assert one.share is not None
        parts = (one.share.one_way, one.share.both_ways, one.share.exchange)
        row = " | ".join(f"{float(part):.2f}" for part in parts)
        assert f"| a {one.lost.split()[0]} | {row} |" in PAGE
