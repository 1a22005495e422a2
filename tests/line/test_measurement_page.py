"""docs/measurement.md, command by command, on one served line of the real engine."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.serving import COMMAND, ROOT, Command

pytestmark = pytest.mark.engine
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGE = (ROOT / "docs" / "measurement.md").read_text()
LINES: list[str] = [line for block in BLOCK.findall(PAGE) for line in block.splitlines()]
# The page of reports is made without a line: see report/test_report_section.py.
COMMANDS = [line for line in LINES if not line.startswith("tetraspark report")]
ANY_URL = "http://127.0.0.1:30000/v1"


@pytest.fixture
def url(served: Any) -> str:
    return str(served["url"])


def report_of(line: Command, url: str, command: str, ends: tuple[int, ...] = (0,)) -> Any:
    """Run a command of the page with --json; it must do what it says."""
    key = line.site.with_name("key")
    words = shlex.split(command.replace(ANY_URL, f"{url} --key-file {key}"))
    assert words[0] == "tetraspark"
    result = subprocess.run(
        [str(COMMAND), *words[1:], "--json"],
        env={**os.environ, **line.env, "TETRASPARK_SITE": str(line.site)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode in ends, result.stdout + result.stderr
    return json.loads(result.stdout)


def command_with(words: str) -> str:
    (found,) = [command for command in COMMANDS if words in command]
    return found


def test_decode_of_the_line(line: Command, url: str) -> None:
    report = report_of(line, url, command_with("decode --concurrency"))
    cells = report["cells"]
    assert [(cell["kind"], cell["sampling"], cell["concurrency"]) for cell in cells] == [
        (kind, sampling, count)
        for kind in ("code", "json")
        for sampling in ("greedy", "sampled")
        for count in (1, 4)
    ]
    assert all(cell["valid"] and cell["counted"] for cell in cells)
    assert all(cell["tokens_per_second"] > 0 for cell in cells)
    assert all(one["cached_tokens"] is not None for cell in cells for one in cell["rounds"])
    about = report["about"]
    assert about["hardware_class"] == "stand-in"
    assert about["engine"]["max_total_num_tokens"] == 8192
    assert report["changed_settings"] == []


def test_decode_of_any_url_knows_nothing_of_the_hardware(line: Command, url: str) -> None:
    report = report_of(line, url, command_with("--url"))
    assert report["about"]["hardware_class"] == "unknown"
    assert report["about"]["model"] == "tiny"
    assert report["about"]["run"] is None


def test_more_requests_than_the_line_runs_are_no_number(line: Command, url: str) -> None:
    words = ("--concurrency", "12", "--kinds", "structured", "--max-tokens", "24")
    result = line.run("bench", "decode", *words, "--rounds", "1", "--warm-up", "0", "--json")
    assert result.returncode == 1
    (cell,) = json.loads(result.stdout)["cells"]
    assert cell["tokens_per_second"] is None
    assert "at most 8 of 12 requests ran at once" in cell["faults"]


def test_prefill(line: Command, url: str) -> None:
    report = report_of(line, url, command_with("bench prefill"))
    rows = [(row["text"], row["wanted_tokens"], row["valid"]) for row in report["rows"]]
    assert rows == [
        ("real", 256, True),
        ("real", 1024, True),
        ("filler", 256, True),
        ("filler", 1024, True),
    ]
    assert report["corpus"].startswith("Python ")


def test_needle(line: Command, url: str, tmp_path: Path) -> None:
    out = tmp_path / "needle.json"
    report = report_of(line, url, f"{command_with('needle')} --out {out}", ends=(0, 1))
    found = [case["found"] for case in report["cases"]]
    assert len(found) == 6
    assert sum(found) >= 5, "a model this small misses one in fifty"
    assert report["ok"] == all(found)
    assert json.loads(out.read_text()) == report


def test_soak(line: Command, url: str) -> None:
    report = report_of(line, url, command_with("soak"))
    assert report["faults"] == []
    assert len(report["waves"]) >= 2
    assert report["requests"] == len(report["waves"]) * 6
    assert report["growth"]["rank0.failed"] == 0
    assert "mem_available_gib" in report["growth"]


def test_quality(line: Command, url: str) -> None:
    report = report_of(line, url, command_with("quality --only"))
    verdicts = {one["id"]: one["verdict"] for one in report["outcomes"]}
    known = ("CODE.001", "JSON.001", "NUMBER.001", "FORMAT.001")
    assert verdicts == {
        **dict.fromkeys(known, "right"),
        **dict.fromkeys(("CODE.009", "NUMBER.009"), "wrong"),
    }
    assert (report["sandbox"], report["faults"]) == ("proven", [])
    assert report["tokens_per_second"] > 0


def test_the_page_has_no_other_commands() -> None:
    assert len(COMMANDS) == 6
