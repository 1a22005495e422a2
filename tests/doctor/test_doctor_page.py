"""docs/doctor.md: its table is the catalogue, its commands run."""

import os
import re
import subprocess

import pytest

from tests.doctor.faults import FAULTS
from tests.doctor.stand import Stand
from tests.serving import COMMAND, ROOT
from tetraspark.cli.doctor import _print
from tetraspark.doctor.catalogue import CATALOGUE
from tetraspark.doctor.memory import USUAL_BYTES
from tetraspark.fleet.meminfo import GIB

PAGE = (ROOT / "docs" / "doctor.md").read_text()
COMMANDS = [
    line for block in re.findall(r"(?ms)^```sh\n(.*?)^```", PAGE) for line in block.splitlines()
]
WITHOUT_NODES = ("--list", "--dry-run", "sites/local.toml")
"""What says of a command that it touches no node; tests/fleet/test_doctor.py runs the others."""
ON_NODES = [line for line in COMMANDS if not any(word in line for word in WITHOUT_NODES)]


def test_the_table_is_the_catalogue() -> None:
    rows = re.findall(r"(?m)^\| `([A-Z_.]+)` \| (\w+) nodes? \| ([\w ]+) \| (.*) \|$", PAGE)
    assert rows == [
        (
            one.id,
            "each" if one.scope == "node" else "all",
            " and ".join(one.kinds),
            one.title + (" (required)" if one.required else ""),
        )
        for one in CATALOGUE
    ]


def test_the_page_has_commands_of_both_sorts() -> None:
    assert len(ON_NODES) == 4
    assert len(COMMANDS) == 8


@pytest.mark.parametrize("line", [line for line in COMMANDS if line not in ON_NODES])
def test_commands_that_touch_no_node_run(stand: Stand, line: str) -> None:
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=ROOT,
        env=os.environ
        | {"PATH": f"{COMMAND.parent}:{os.environ['PATH']}"}
        | {"TETRASPARK_SITE": str(stand.loaded.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    # Whether this machine could serve now depends on what else it does.
    assert done.returncode in ((0, 1) if "local.toml" in line else (0,)), done.stderr
    assert done.stdout


def test_figures_of_the_page_are_those_of_the_code() -> None:
    assert f"or {USUAL_BYTES // GIB} GiB\n" in PAGE


def test_the_finding_on_the_page_is_what_is_printed(
    stand: Stand, capsys: pytest.CaptureFixture[str]
) -> None:
    (block,) = re.findall(r"(?ms)^```text\n(.*?)^```", PAGE)
    FAULTS["RDMA.MTU"].make(stand)
    _print(stand.examine("RDMA.MTU"), every=False)
    assert capsys.readouterr().out.startswith(block)
