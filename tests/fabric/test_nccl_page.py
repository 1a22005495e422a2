"""docs/nccl.md: its commands run, its tables are those of the program."""

import re
from pathlib import Path

import pytest

from tests.fabric.nccl_sites import profile, site
from tests.fabric.page import run
from tests.fabric.sparks import pair, ring, switched
from tests.serving import ROOT

PAGE = (ROOT / "docs" / "nccl.md").read_text()
HERE = [
    line for block in re.findall(r"(?ms)^```sh\n(.*?)^```", PAGE) for line in block.splitlines()
]
FLEET = re.findall(r"(?m)^tetraspark fabric nccl --site site\.toml$", PAGE)
SOURCE = ROOT / "src" / "tetraspark" / "fabric"


@pytest.mark.parametrize("line", HERE)
def test_a_command_without_a_fleet_runs(line: str) -> None:
    done = run(line, ROOT)
    assert done.returncode == 0, done.stderr
    (shown,) = re.findall(r"(?ms)^```\n(NCCL of .*?)^```", PAGE)
    assert "--json" in line or done.stdout.startswith(shown)
    assert len(HERE) == 2


def test_a_command_for_a_fleet_ends_with_a_reason(tmp_path: Path) -> None:
    text = (ROOT / "sites/four-sparks-ring.toml").read_text()
    text = re.sub(r'(?m)^(host = "192.*)$', r'\1\nssh_host = "127.0.0.1"', text)
    (tmp_path / "site.toml").write_text(text)
    (line,) = FLEET
    done = run(line, tmp_path)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.count("wanted: an answer from every node") == 4


def test_the_tables_of_variables_profiles_and_checks_are_whole() -> None:
    library = 'nccl_library_dir = "/opt/nccl"'
    found = [
        profile(ring(), site()),
        profile(ring(), site(env='NCCL_IB_MERGE_NICS = "0"')),
        profile(ring(), site(ring=library), patch="dual-pci"),
        profile(switched(), site(topology="switch", devices=("rocep1s0f0",))),
        profile(pair(), site(topology="pair", nodes=("spark1", "spark2"))),
    ]
    names = {one.name for several in found for one in (*several.variables, *several.kept)}
    assert set(re.findall(r"(?m)^\| `(NCCL_\w+)` \|", PAGE)) == names
    rows = PAGE.split("## Profiles")[1].split("## Variables")[0]
    assert set(re.findall(r"(?m)^\| `([\w-]+)` \|", rows)) == {one.name for one in found}
    emitted = {
        name
        for file in ("nccl_checks.py", "nccl_conf.py")
        for name in re.findall(r'"(NCCL\.[A-Z]+)"', (SOURCE / file).read_text())
    }
    assert set(re.findall(r"(?m)^\| `(NCCL\.[A-Z]+)` \|", PAGE)) == emitted
