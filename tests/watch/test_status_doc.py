"""docs/status-page.md: its commands run, its tables are those of the program."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.fabric.page import run
from tests.serving import ROOT
from tests.watch import status_lines as lines
from tetraspark.watch.board import Board
from tetraspark.watch.http import CONNECTIONS, STALE_SECONDS, Server, serve_page
from tetraspark.watch.http_handler import CONTENTS, HEAD_BYTES, SECONDS
from tetraspark.watch.metric_table import METRICS
from tetraspark.watch.metrics import LINE_STATES, RANK_STATES

PAGE = (ROOT / "docs" / "status-page.md").read_text()
NAMES = {one.name for one in METRICS}


def blocks(kind: str) -> list[str]:
    found: list[str] = re.findall(rf"(?ms)^```{kind}\n(.*?)^```", PAGE)
    return [line for block in found for line in block.splitlines()]


@pytest.fixture(scope="module")
def board() -> Board:
    return Board()


@pytest.fixture(scope="module")
def server(board: Board) -> Iterator[Server]:
    made = serve_page(board, "127.0.0.1", 0)
    yield made
    made.close()


@pytest.mark.parametrize("line", blocks("sh"))
def test_a_command_does_what_the_page_says(
    server: Server, board: Board, tmp_path: Path, line: str
) -> None:
    assert "9400" in line
    here = line.replace("9400", str(server.port))
    board.post(lines.ready(time.time()))
    done = run(here, tmp_path)
    assert done.returncode == 0, done.stderr
    if "healthz" in line:
        assert done.stdout.startswith("ready: every rank is up")
        board.post(lines.wedged(time.time()))
        assert run(here, tmp_path).returncode == 22
    elif "state.json" in line:
        assert '"tokens_per_second": 318.4' in done.stdout
    else:
        assert 'tetraspark_line_state{state="ready"} 1.0' in done.stdout


def test_the_scrape_configuration_names_an_address_that_answers(server: Server) -> None:
    text = "\n".join(blocks("yaml"))
    (target,) = re.findall(r'targets: \["(.*)"\]', text)
    address = target.replace("9400", str(server.port))
    answer = httpx.get(f"http://{address}/metrics", trust_env=False)
    assert answer.status_code == 200 and "tetraspark_observed" in answer.text


def test_every_question_is_about_a_metric_that_there_is() -> None:
    asked = set(re.findall(r"tetraspark_\w+", "\n".join(blocks("promql"))))
    assert len(asked) >= 8 and asked <= NAMES


def test_the_table_of_metrics_is_that_of_the_code() -> None:
    rows = re.findall(r"(?m)^\| `(tetraspark_\w+)` \| (gauge|counter) \|(.*)\|(.*)\|(.*)\|$", PAGE)
    assert [row[0] for row in rows] == [one.name for one in METRICS]
    for one, (_, kind, labels, meaning, reading) in zip(METRICS, rows, strict=True):
        assert kind == one.kind
        assert tuple(re.findall(r"`(\w+)`", labels)) == one.labels
        assert meaning.strip() == one.help
        assert len(reading.strip()) > 10


@pytest.mark.parametrize(
    ("name", "states"),
    [("tetraspark_line_state", LINE_STATES), ("tetraspark_rank_state", RANK_STATES)],
)
def test_the_states_are_those_of_the_code(name: str, states: tuple[str, ...]) -> None:
    (row,) = re.findall(rf"(?m)^\| `{name}` \| (`[a-z`, ]+) \|$", PAGE)
    assert tuple(re.findall(r"`(\w+)`", row)) == states


def test_the_addresses_and_limits_are_those_of_the_code() -> None:
    rows = PAGE.split("## The page")[0]
    assert re.findall(r"(?m)^\| `(/[\w.]*)` \|", rows) == [
        "/",
        "/metrics",
        "/state.json",
        "/healthz",
    ]
    assert set(re.findall(r"(?m)^\| `(/[\w.]*)` \|", rows)) == set(CONTENTS)
    assert f"older than {STALE_SECONDS:.0f} s" in PAGE
    assert f"up to {HEAD_BYTES >> 10} KiB that must come within {SECONDS:.0f} s" in PAGE
    assert f"{CONNECTIONS} connections" in PAGE
