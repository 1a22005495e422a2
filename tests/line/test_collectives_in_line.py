"""A start replaced by another, and a rank of that one stopped while it decodes."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.line.faults import error_of_a_request, roots, survivors_words
from tests.serving import Command, eventually, write_site
from tetraspark.fleet.process import labelled
from tetraspark.line.api import Api

pytestmark = pytest.mark.engine
FREEZE_SECONDS = 2


@dataclass(frozen=True)
class Replaced:
    """A line whose first start was ended by the second: how each of them ended."""

    line: Command
    state: Path
    first: subprocess.CompletedProcess[str]
    second: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def replaced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replaced]:
    folder = tmp_path_factory.mktemp("replaced")
    swaps = {
        'transport = "shm"': f'transport = "shm"\nfreeze_seconds = {FREEZE_SECONDS}',
        "port = 30000": "port = 0\n\n[deadlines]\nstop_seconds = 3",
    }
    line, state = Command(write_site(folder, "faulty", swaps), folder / "state"), folder / "state"
    argv = line.argv("serve", "--json")
    with subprocess.Popen(argv, env=line.env, stdout=subprocess.PIPE, text=True) as first:
        assert eventually(lambda: {one.rank for one in labelled(state)} == {0, 1, 2, 3}, 30)
        second = line.run("serve", "--replace", "--json")
        text = first.communicate(timeout=60)[0]
    ended = subprocess.CompletedProcess(argv, first.returncode, text)
    yield Replaced(line, state, ended, second)
    line.run("stop")
    assert labelled(state) == []


def test_a_replaced_start_ends_and_leaves_the_other_alone(replaced: Replaced) -> None:
    assert replaced.second.returncode == 0, replaced.second.stderr
    assert replaced.first.returncode == 1
    (problem,) = json.loads(replaced.first.stdout)["problems"]
    assert problem["seen"] == "another command stopped this start"
    status = replaced.line.json("status")
    assert status["run"] == json.loads(replaced.second.stdout)["run"]


def test_survivors_of_a_stopped_rank_all_name_it_after_the_sites_patience(
    replaced: Replaced,
) -> None:
    line = replaced.line
    victim = next(one for one in labelled(replaced.state) if one.name == "sglang::scheduler_TP1")
    api = Api(json.loads(replaced.second.stdout)["url"], "tiny")
    seconds, _ = error_of_a_request(api, lambda: os.kill(victim.pid, signal.SIGSTOP))
    assert FREEZE_SECONDS <= seconds < FREEZE_SECONDS + 15
    eventually(lambda: set(survivors_words(line, dead=1)) == {0, 2, 3}, 10)
    words = survivors_words(line, dead=1)
    assert set(words) == {0, 2, 3}, line.run("logs", "3", "-n", "30").stdout
    (root,) = roots(words)
    assert root.startswith("frozen: rank 1, seen by rank ")
    status: Any = line.json("status")
    assert status["reason"].startswith("rank 1 (node1)")
    assert status["verdict"] in ("degraded", "down")
