"""The way back on the real engine: the line of test_serving.py, whose site was changed since.

Runs what docs/operations.md says of it.
"""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.line.conftest import KEY, LIMIT
from tests.line.faults import roots, survivors_words
from tests.line.test_operations_page import block_of, run_block
from tests.serving import Command, eventually, files_with
from tetraspark.fleet.process import labelled
from tetraspark.receipts.changes import changes
from tetraspark.receipts.store import ReceiptStore
from tetraspark.watch.process import WatchProcess

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def again(line: Command, served: Any) -> Iterator[subprocess.CompletedProcess[str]]:
    """What the page's commands print, after somebody changed the site file, and then broke it."""
    text = line.site.read_text()
    line.site.write_text(text.replace(f"max_reduce_bytes = {LIMIT}", "max_reduce_bytes = 8192"))
    yield run_block(line, block_of("good="))
    line.run("stop")
    line.site.write_text(text)


def test_the_line_serves_again_as_its_receipt_recorded(
    line: Command, served: Any, again: subprocess.CompletedProcess[str]
) -> None:
    assert again.returncode == 0, again.stderr
    assert f"would serve receipt {served['run']} of " in again.stdout
    assert "ready: tiny at " in again.stdout
    assert f"as in:    receipt {served['run']}" in again.stdout
    status = line.json("status")
    assert (status["verdict"], status["run"] != served["run"]) == ("ready", True)
    plan = json.loads((state(line) / status["run"] / "plan.json").read_text())
    assert ["TETRASPARK_MAX_REDUCE_BYTES", str(LIMIT)] in plan["ranks"][0]["env"]
    assert "max_reduce_bytes = 8192" in line.site.read_text()


def test_its_receipt_names_what_it_went_back_to(
    line: Command, served: Any, again: subprocess.CompletedProcess[str]
) -> None:
    store = ReceiptStore(state(line))
    first, second = (store.read(id) for id in store.ids())
    assert (first.id, second.rollback_of) == (served["run"], served["run"])
    assert (second.site_text, second.site_sha256) == (first.site_text, first.site_sha256)
    assert f"from {first.id} to {second.id}: " in again.stdout
    # A commit may come between the two starts, and whatever else this machine does.
    passing = ("idle memory", "revision")
    assert [str(one) for one in changes(first, second) if one.what not in passing] == []
    assert files_with(state(line), KEY) == []


def test_what_keeps_it_writes_the_recorded_site(
    line: Command, served: Any, again: subprocess.CompletedProcess[str]
) -> None:
    (told,) = (one.strip() for one in again.stdout.splitlines() if "--site-text > " in one)
    words, _, file = told.partition(" > ")
    assert file == str(line.site)
    done = line.run(*words.split()[1:-3], "--site-text")
    assert f"max_reduce_bytes = {LIMIT}" in done.stdout


def test_the_line_is_watched_as_its_receipt_recorded_it(
    line: Command,
    served: Any,
    again: subprocess.CompletedProcess[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A watch of the site file as it is now would watch another line, or none."""
    process = WatchProcess(state(line))
    argv = Path(f"/proc/{process.pid()}/cmdline").read_text().split("\0")
    monkeypatch.setenv("TETRASPARK_STATE", line.env["TETRASPARK_STATE"])
    run = line.json("status")["run"]
    text = line.site.read_text()
    line.site.write_text("name = [")
    try:
        assert argv[argv.index("--receipt") + 1] == run
        words = ("--line", "served", "--receipt", run)
        process.start(line.site, state(line) / run / "watch.log", words)
        told = line.run("watch", "--once", *words, "--json")
        assert (told.returncode, json.loads(told.stdout)["state"]) == (0, "ready"), told.stderr
    finally:
        line.site.write_text(text)


def test_survivors_of_a_rank_killed_between_two_requests_name_it(
    line: Command, served: Any, again: subprocess.CompletedProcess[str]
) -> None:
    victim = next(one for one in labelled(state(line)) if one.name == "sglang::scheduler_TP3")
    os.kill(victim.pid, signal.SIGKILL)
    assert eventually(lambda: set(survivors_words(line, dead=3)) == {0, 1, 2}, 30)
    (root,) = roots(survivors_words(line, dead=3))
    assert root.startswith("dead: rank 3, seen by rank ")
    assert line.json("status")["reason"].startswith("rank 3 (node3)")


def state(line: Command) -> Path:
    return Path(line.env["TETRASPARK_STATE"], "served")
