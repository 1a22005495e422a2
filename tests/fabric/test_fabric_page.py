"""docs/fabric.md: its commands run, its checks and examples are those of the program."""

import re
from pathlib import Path

import pytest

from tests.fabric.page import run
from tests.serving import ROOT

PAGE = (ROOT / "docs" / "fabric.md").read_text()
HERE = [
    line for block in re.findall(r"(?ms)^```sh\n(.*?)^```", PAGE) for line in block.splitlines()
]
FLEET = re.findall(r"(?m)^tetraspark fabric .*--site site\.toml.*$", PAGE)
SOURCE = ROOT / "src" / "tetraspark" / "fabric"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the shipped sites, and a site whose nodes refuse every login."""
    (tmp_path / "sites").symlink_to(ROOT / "sites")
    text = (ROOT / "sites/four-sparks-ring.toml").read_text()
    text = re.sub(r'(?m)^(host = "192.*)$', r'\1\nssh_host = "127.0.0.1"', text)
    (tmp_path / "site.toml").write_text(text)
    return tmp_path


@pytest.mark.parametrize("line", HERE)
def test_a_command_without_a_fleet_runs(folder: Path, line: str) -> None:
    done = run(line, folder)
    assert done.returncode == 0, done.stderr
    shown = re.findall(r"(?ms)^```\n(fabric of .*?)^```", PAGE)[0]
    if "--json" not in line:
        assert done.stdout.startswith(shown), done.stdout
        assert "16 of 16 checks are ok" in done.stdout
    assert ("--svg" not in line) or (folder / "ring.svg").read_text().startswith("<svg")


@pytest.mark.parametrize("line", FLEET)
def test_a_command_for_a_fleet_tells_that_no_node_answers(folder: Path, line: str) -> None:
    done = run(line, folder)
    assert "Traceback" not in done.stderr
    if " show " in line:
        assert done.returncode == 1, done.stderr
        text = done.stdout or (folder / "fabric.json").read_text()
        assert text.count("spark3") >= 1 and "CABLING.NODES" in text
    else:
        assert done.returncode == 1
        assert all(f"spark{number}" in done.stderr for number in range(1, 5))


def test_the_table_of_checks_is_whole() -> None:
    emitted = {
        name
        for file in SOURCE.glob("*_checks.py")
        for name in re.findall(r'"((?:CABLING|RELAY)\.[A-Z_]+)"', file.read_text())
    } | set(re.findall(r'"(CABLING\.[A-Z_]+)"', (SOURCE / "cabling_subnets.py").read_text()))
    assert set(re.findall(r"(?m)^\| `([A-Z]+\.[A-Z_]+)` \|", PAGE)) == emitted
    assert len(HERE) == 3 and len(FLEET) == 5
