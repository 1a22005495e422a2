"""The watch that `serve` leaves beside a line of the real engine: well, frozen, and well again.

It has to come before the line is destroyed (test_serving.py).
"""

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.line.conftest import KEY
from tests.serving import Command, eventually
from tetraspark.fleet.process import labelled
from tetraspark.line.api import Api
from tetraspark.line.log_tail import log_end
from tetraspark.watch.engine_metrics import read_metrics

pytestmark = pytest.mark.engine
LONG = 150.0


def watched(line: Command) -> Any:
    return line.json("status")["watch"]


def root(line: Command) -> Path:
    return Path(line.env["TETRASPARK_STATE"]) / "served"


def test_serve_leaves_a_watch_that_says_ready(line: Command, served: Any) -> None:
    assert eventually(lambda: watched(line)["state"] == "ready", LONG)
    assert watched(line)["reason"] == "every rank is up, the canary answered"
    log = root(line) / served["run"] / "watch.log"
    page, said, *_ = log.read_text().splitlines()
    assert page == f"status page: {served['page']}"
    assert json.loads(said)["run"] == served["run"]


def test_the_engine_tells_its_counters_without_a_key(line: Command, served: Any) -> None:
    api = Api(served["url"], "tiny", None)
    before = read_metrics(api.text("/metrics", 10) or "")
    Api(served["url"], "tiny", KEY).chat("Count the ranks.", 32, 60)
    after = read_metrics(api.text("/metrics", 10) or "")
    assert before is not None
    assert after is not None
    assert (after.generated_tokens or 0) > (before.generated_tokens or 0)
    assert after.kv_used is not None


def test_a_look_has_every_rank_lane_and_node(line: Command, served: Any) -> None:
    found = line.json("watch", "--once")
    assert (found["state"], found["versions"]["engine"]) == ("ready", "0.5.23")
    for rank in found["ranks"]:
        assert rank["operations"] > 0
        assert {lane["peer"] for lane in rank["lanes"]} == {0, 1, 2, 3} - {rank["rank"]}
        assert {lane["state"] for lane in rank["lanes"]} == {"up"}
        assert rank["memory_available"] > rank["memory_free"] / 2 > 0


def test_a_frozen_rank_under_a_request_is_a_wedge_whose_stacks_are_kept(
    line: Command, served: Any
) -> None:
    """The patience of the communicators of this site is longer than that of its watch."""
    victim = next(one for one in labelled(root(line)) if one.name == "sglang::scheduler_TP1")
    api = Api(served["url"], "tiny", KEY)
    said: list[str] = []
    asking = threading.Thread(
        target=lambda: said.append(api.chat("Count the ranks.", 400, 120).finish)
    )
    os.kill(victim.pid, signal.SIGSTOP)
    try:
        asking.start()
        assert eventually(lambda: watched(line)["acts"] != [], LONG)
    finally:
        os.kill(victim.pid, signal.SIGCONT)
    asking.join()
    (act,) = watched(line)["acts"]
    assert (act["rank"], act["done"]) == (1, "nothing")
    assert "rank 1 (node1): a process of it is stopped" in act["reason"]
    assert act["places"]["1"].startswith("sglang::scheduler_TP1: stopped (T (stopped)), kernel:")
    for rank in "023":
        assert "(signal)" in (Path(act["folder"]) / "stacks.txt").read_text()
        assert "sglang::scheduler_TP" in act["places"][rank]
    assert {one.name for one in Path(act["folder"]).iterdir()} >= {
        "metrics.txt",
        "support-bundle.tar.gz",
    }
    assert said == ["length"] or said == ["stop"]


def test_it_is_ready_again_once_the_rank_goes_on(line: Command, served: Any) -> None:
    assert eventually(lambda: watched(line)["state"] == "ready", LONG)
    assert "Traceback" not in log_end(root(line) / served["run"], 1)
    assert KEY not in (root(line) / "watch-acts.json").read_text()
