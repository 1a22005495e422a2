"""docs/support-bundle.md: its commands run, and its tables are what the code does."""

import re
import subprocess
from pathlib import Path

from tests.bundle.nodes import found
from tests.bundle.test_command import KEY
from tests.serving import COMMAND, ROOT, Command, write_site
from tetraspark.bundle.containers import LOG_LINES
from tetraspark.bundle.node_sources import COMMANDS, FILES, journals
from tetraspark.bundle.power import power_checks
from tetraspark.bundle.source import HEAD_BYTES, TAIL_BYTES
from tetraspark.fleet.facts import Facts

PAGE = (ROOT / "docs" / "support-bundle.md").read_text()


def test_the_commands_of_the_page_work(tmp_path: Path) -> None:
    (block,) = re.findall(r"(?ms)^```sh\n(.*?)^```", PAGE)
    (tmp_path / "local.key").write_text(KEY)
    site = write_site(tmp_path, "page")
    command = Command(site, tmp_path / "state")
    path = {"PATH": f"{COMMAND.parent}:{command.env['PATH']}", "TETRASPARK_SITE": str(site)}
    done = subprocess.run(
        ["bash", "-euc", block],
        cwd=tmp_path,
        env=command.env | path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "tetraspark-support-page" / "index.json").is_file()
    assert "wrote bundle.tar.gz" in done.stdout


def test_the_page_names_every_check_and_the_sizes() -> None:
    checks = power_checks(journals(Facts.of("spark1", found("x"))))
    assert {check.id for check in checks} == set(re.findall(r"(?m)^\| `([A-Z_.]+)`", PAGE))
    assert f"first {HEAD_BYTES >> 10} KiB and the last {TAIL_BYTES >> 10} KiB" in PAGE
    assert f"last {LOG_LINES} lines" in PAGE


def test_the_page_names_what_is_taken_of_a_node() -> None:
    text = PAGE.lower()
    for name in (*FILES, *(name for name in COMMANDS if not name.startswith("fabric/"))):
        word = name.removesuffix(".txt").removesuffix("-previous-boot").removeprefix("home-")
        word = {"cmdline": "kernel command line"}.get(word, word.removeprefix("docker-"))
        assert word in text, name
