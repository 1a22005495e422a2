"""docs/fleet.md, command by command, on four nodes with a stand-in for the engine."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.line import FleetLine, give_image
from tests.fleet.nodes.fleet import Fleet
from tests.serving import ROOT

pytestmark = pytest.mark.fleet
PAGE = (ROOT / "docs" / "fleet.md").read_text()
COMMANDS = re.findall(r"^tetraspark .*$", PAGE, re.MULTILINE)
# In the order of the page: the beginning of a command, and what it prints.
SAYS = [
    ("serve --dry-run", ["--device=/dev/infiniband", "GLOO_SOCKET_IFNAME=eth0", "--node-rank 3"]),
    ("serve", ["ready: tiny at http://10.99.0.1:8888/v1", "answered: '42'"]),
    ("status", ["ready - every rank is up", "spark4  running", "canary in"]),
    ("smoke", ["API.KEY", "HTTP 401 without the key"]),
    ("logs 2 -n 20", ['{"tetraspark": "engine"', "TP2] KV Cache is allocated"]),
    ("stop --dry-run", ["would end 4 containers: tetraspark-line-r0 on spark1"]),
    ("stop", ["stopped 4 ranks; removed 4 containers"]),
]


@pytest.fixture
def line(fleet: Fleet, tmp_path: Path) -> Iterator[FleetLine]:
    give_image(fleet)
    made = FleetLine(fleet, tmp_path)
    yield made
    made.clean()
    shutil.rmtree(tmp_path)


def test_every_command_of_the_page_does_what_it_says(line: FleetLine) -> None:
    assert [command.removeprefix("tetraspark ") for command in COMMANDS] == [one for one, _ in SAYS]
    for command, texts in SAYS:
        verb, *words = command.split()
        done = subprocess.run(
            line.argv(verb, *words),
            env=line.env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
        for text in texts:
            assert text in done.stdout, f"{command}: {done.stdout}"
    assert line.containers() == []
