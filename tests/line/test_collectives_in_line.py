"""A rank killed or stopped while the line decodes: survivors name it, nothing hangs."""

import json
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.serving import Command, eventually, write_site
from tetraspark.errors import RunError
from tetraspark.fleet.process import labelled
from tetraspark.line.api import Answer, Api

pytestmark = pytest.mark.engine
FREEZE_SECONDS = 2


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Command]:
    swaps = {'transport = "shm"': f'transport = "shm"\nfreeze_seconds = {FREEZE_SECONDS}'}
    command = Command(write_site(tmp_path, "faulty", **swaps), tmp_path / "state")
    yield command
    command.run("stop")


def fault(line: Command, rank: int, number: signal.Signals) -> tuple[float, Exception]:
    """Serve, signal a scheduler in mid-request; return the request's end and its error."""
    result = line.run("serve", "--json")
    assert result.returncode == 0, result.stderr
    api = Api(json.loads(result.stdout)["url"], "tiny")
    root = Path(line.env["TETRASPARK_STATE"])
    victim = next(one for one in labelled(root) if one.name == f"sglang::scheduler_TP{rank}")
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(request, api)
        time.sleep(2.0)
        assert not asked.done(), "the request ended before the fault"
        os.kill(victim.pid, number)
        started = time.monotonic()
        error = asked.exception(timeout=60)
    assert isinstance(error, RunError)
    return time.monotonic() - started, error


def request(api: Api) -> Answer:
    return api.chat("Count to a thousand.", 1500, 120)


def survivors_words(line: Command, dead: int) -> dict[int, str]:
    words = {}
    for rank in range(4):
        text = line.run("logs", str(rank), "-n", "9999").stdout
        found = [one for one in text.splitlines() if "CollectiveError: " in one]
        if found and rank != dead:
            words[rank] = found[0]
    return words


def roots(words: dict[int, str]) -> set[str]:
    return {text.split("root cause: ")[1] for text in words.values()}


def test_survivors_of_a_killed_rank_all_name_it_and_the_request_ends(line: Command) -> None:
    seconds, error = fault(line, 2, signal.SIGKILL)
    assert seconds < 15, "the client waited for the dead"
    assert eventually(lambda: set(survivors_words(line, dead=2)) == {0, 1, 3}, 10)
    words = survivors_words(line, dead=2)
    (root,) = roots(words)
    assert root.startswith("dead: rank 2, seen by rank ")
    assert "sequence" in root
    assert "bytes" in root

    def down() -> Any:
        return line.json("status")["verdict"] == "down"

    assert eventually(down, 30)
    assert line.json("status")["reason"].startswith("rank 2 (node2)")
    assert str(error)


def test_survivors_of_a_stopped_rank_all_name_it_after_the_sites_patience(line: Command) -> None:
    seconds, _ = fault(line, 1, signal.SIGSTOP)
    assert FREEZE_SECONDS <= seconds < FREEZE_SECONDS + 15
    eventually(lambda: set(survivors_words(line, dead=1)) == {0, 2, 3}, 10)
    words = survivors_words(line, dead=1)
    assert set(words) == {0, 2, 3}, line.run("logs", "3", "-n", "30").stdout
    (root,) = roots(words)
    assert root.startswith("frozen: rank 1, seen by rank ")
    status = line.json("status")
    assert status["reason"].startswith("rank 1 (node1)")
    assert status["verdict"] in ("degraded", "down")
