"""A watch on a line of four nodes: what it sees through ssh and Docker, and a restart by it.

The engine is a stand-in (tests/line/stand_in_engine.py), which stands still when it is told to.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.line import FleetLine, give_image
from tests.fleet.nodes.fleet import Fleet
from tests.serving import eventually

pytestmark = pytest.mark.fleet
WATCH = """[watch]
on_wedge = "restart-once"
interval_seconds = 1.0
canary_seconds = 5.0
canary_deadline_seconds = 2.0
stall_seconds = 5.0
port = 0
"""
NODES = [f"node{number}" for number in range(1, 5)]


@pytest.fixture(scope="module")
def line(running_fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FleetLine]:
    swaps = {"[watch]\nenabled = false\n": WATCH}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{running_fleet.bin}:{os.environ['PATH']}")
        give_image(running_fleet)
        made = FleetLine(running_fleet, tmp_path_factory.mktemp("watch") / "line", "line", **swaps)
        served = made.run("serve")
        assert served.returncode == 0, served.stderr
        assert "page:     http://127.0.0.1:" in served.stdout
        yield made
        made.run("stop")
        running_fleet.heal()
        made.clean()


def watched(line: FleetLine) -> Any:
    return line.json("status")["watch"]


def test_a_look_has_containers_and_memory_of_every_node(line: FleetLine) -> None:
    found = line.json("watch", "--once")
    assert found["state"] == "ready", found["reason"]
    for rank in found["ranks"]:
        assert (rank["state"], rank["operations"]) == ("running", 7)
        assert rank["memory_available"] > 0
        assert rank["page_cache"] is not None


def test_a_wedge_is_kept_from_all_containers_and_the_line_is_restarted_once(
    line: FleetLine,
) -> None:
    first = line.json("status")["run"]
    for node in NODES:
        line.behave(node, {"silent": True})
    assert eventually(lambda: bool(watched(line)["acts"]), 90)
    for node in NODES:
        line.behave(node, {})
    (act,) = watched(line)["acts"]
    assert (act["run"], act["done"]) == (first, "restart-once")
    assert set(act["places"]) == {"0", "1", "2", "3"}
    assert all("(launch_server.py:" in place for place in act["places"].values())
    assert (Path(act["folder"]) / "support-bundle.tar.gz").is_file()

    def again() -> bool:
        status = line.json("status")
        ready = status["run"] != first and status["verdict"] == "ready"
        return ready and status["watch"]["pid"] is not None

    assert eventually(again, 90)
    log = (line.state / first / "watch.log").read_text()
    assert "ready" in log
    assert "despite" not in log
