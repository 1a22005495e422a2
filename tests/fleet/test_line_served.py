"""One line on four nodes with real sshd and Docker, from start to lost ranks and stop.

The engine is a stand-in (tests/line/stand_in_engine.py): it prints what the engine prints.
"""

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.line import DESPITE, KEY, FleetLine, give_image
from tests.fleet.nodes.fleet import Fleet
from tests.serving import eventually
from tetraspark.collectives.wiring import Wiring
from tetraspark.fabric.nccl_checks import RankNccl
from tetraspark.fleet.docker_log import STAMP
from tetraspark.fleet.process import labelled
from tetraspark.fleet.run_files import log_path
from tetraspark.line.fleet_launch import launch_of
from tetraspark.line.make_plan import make_plan
from tetraspark.line.nccl_guard import nccl_start_checks
from tetraspark.site.load import load_site

pytestmark = pytest.mark.fleet
FOLDER = "root/.local/state/tetraspark/line/node"
# A process of a container with a library of that name, for as long as the test needs.
NCCL_PROCESS = """
import mmap, time
with open("/libnccl.so.2", "w+b") as file:
    file.write(b"nccl")
    file.flush()
    mapped = mmap.mmap(file.fileno(), 0)
    time.sleep(40)
"""
NAMES = [f"tetraspark-line-r{rank}" for rank in range(4)]


@pytest.fixture(scope="module")
def line(running_fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FleetLine]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{running_fleet.bin}:{os.environ['PATH']}")
        give_image(running_fleet)
        made = FleetLine(running_fleet, tmp_path_factory.mktemp("fleet") / "served")
        yield made
        running_fleet.heal()
        made.clean()


@pytest.fixture(scope="module")
def served(line: FleetLine) -> Any:
    result = line.run("serve", "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def run_dir(line: FleetLine, served: Any) -> Path:
    return line.state / str(served["run"])


def inspected(line: FleetLine, number: int) -> Any:
    text = line.fleet[number].exec("docker", "inspect", NAMES[number - 1]).stdout
    return json.loads(text)[0]


def test_serve_starts_a_container_a_node_workers_first(line: FleetLine, served: Any) -> None:
    assert served["answer"]["text"] == "42"
    assert served["url"] == "http://10.99.0.1:8888/v1"
    assert list(served["seconds"]) == ["import", "load", "warmup", "canary"]
    assert line.containers() == NAMES
    found = [inspected(line, number) for number in range(1, 5)]
    begun = [one["State"]["StartedAt"] for one in found]
    assert begun[0] > max(begun[1:])
    for rank, one in enumerate(found):
        labels = one["Config"]["Labels"]
        assert labels["tetraspark.line"] == "line"
        assert labels["tetraspark.run"] == served["run"]
        assert labels["tetraspark.rank"] == str(rank)
        assert labels["tetraspark.site"] == str(line.site)


def test_each_rank_has_the_values_of_its_own_node(line: FleetLine, served: Any) -> None:
    for number in range(1, 5):
        env = dict(word.split("=", 1) for word in inspected(line, number)["Config"]["Env"])
        assert env["TETRASPARK_RANK"] == str(number - 1)
        assert env["GLOO_SOCKET_IFNAME"] == "eth0"
        assert env["NCCL_IB_HCA"] == "=rocep1s0f0"
        wiring = Wiring.from_json(env["TETRASPARK_WIRING"])
        assert wiring.nodes == tuple(node.name for node in load_site(line.site).site.nodes)
        assert [str(one) for one in wiring.devices[number - 1]] == ["rocep1s0f0"]
        assert "" not in env.values()


def test_nccl_is_looked_at_inside_every_container(line: FleetLine, served: Any) -> None:
    loaded = load_site(line.site)
    with line.nodes() as nodes:
        launch = launch_of(loaded, nodes)
        assert launch.nccl is not None
        plan = make_plan(loaded, launch)
        told = [RankNccl(one.rank, one.node, (), {}) for one in plan.ranks]
        profile = launch.nccl
        # The stand-in for the engine has no NCCL.
        assert {one.verdict for one in nccl_start_checks(nodes, plan, profile, told)} == {"unknown"}
        for number in range(1, 5):
            argv = ("--detach", NAMES[number - 1], "python3", "-c", NCCL_PROCESS)
            line.fleet[number].exec("docker", "exec", *argv)

        def looked_at() -> dict[str, set[str]]:
            found: dict[str, set[str]] = {}
            for one in nccl_start_checks(nodes, plan, profile, told):
                found.setdefault(one.id, set()).add(one.verdict)
            return found

        assert eventually(lambda: looked_at()["NCCL.SAME"] == {"ok"}, 15)
        assert looked_at() == {
            "NCCL.LIBRARY": {"ok"},
            "NCCL.SAME": {"ok"},
            "NCCL.VERSION": {"unknown"},
            "NCCL.VARIABLES": {"ok"},
            "NCCL.DEVICES": {"unknown"},
            "NCCL.CONF": {"ok"},
        }


def test_the_key_is_in_one_file_of_the_head_and_nowhere_else(line: FleetLine, served: Any) -> None:
    head = line.fleet[1].root / FOLDER
    assert (head / "api-key").read_text() == KEY + "\n"
    assert (head / "api-key").stat().st_mode & 0o777 == 0o600
    assert head.stat().st_mode & 0o777 == 0o700
    assert not (line.fleet[2].root / FOLDER / "api-key").exists()
    texts = [
        file.read_text()
        for file in line.state.rglob("*")
        if file.is_file() and file.suffix != ".times"
    ]
    for node in line.fleet.nodes:
        texts.append(node.exec("ps", "-eo", "args").stdout)
        ids = node.exec("docker", "ps", "--quiet").stdout.split()
        texts.append(node.exec("docker", "inspect", *ids).stdout)
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            texts.append((folder / "cmdline").read_text())
    assert len(texts) > 30
    assert [text for text in texts if KEY in text] == []


def test_status_has_every_rank_receipt_and_communicator(line: FleetLine, served: Any) -> None:
    status = line.json("status")
    assert (status["verdict"], status["api"], status["health"]) == ("ready", 200, 200)
    assert all(one["same"] for one in status["effective"])
    assert {one["key"] for one in status["effective"]} >= {"tp_size", "dist_init_addr", "port"}
    for rank in status["ranks"]:
        assert rank["state"] == "running"
        assert set(rank["receipts"]) == {"engine", "tp_all_reduce"}
        told = rank["collectives"]
        assert (told["transport"], told["operations"]) == ("verbs", 7)


def test_what_the_start_went_on_despite_is_told(line: FleetLine, served: Any) -> None:
    tolerated = {(one["id"], one["node"]) for one in line.json("status")["tolerated"]}
    assert tolerated >= {(id, f"spark{n}") for id in ("GPU.PRESENT", "DOCKER.GPU") for n in (1, 4)}
    assert {id.split(".")[0] for id, _ in tolerated} <= {name.split(".")[0] for name in DESPITE}
    assert "started despite spark2 GPU.PRESENT: " in line.run("status").stdout


def test_L47_the_idle_nodes_are_kept_to_compare_with(line: FleetLine, served: Any) -> None:
    """And the page cache of the checkpoint was given back before the load."""
    kept = json.loads((line.state / "good.json").read_text())
    assert list(kept) == ["spark1", "spark2", "spark3", "spark4"]
    assert {one["kernel"] for one in kept.values()} == {os.uname().release}
    free = json.loads((run_dir(line, served) / "state.json").read_text())["mem_free"]
    assert list(free) == list(kept)
    assert all(one["before"] > 0 and one["after"] > 0 for one in free.values())


def test_logs_are_dockers_own_line_by_line(line: FleetLine, served: Any) -> None:
    shown = line.run("logs", "0", "-n", "9999").stdout.splitlines()
    said = line.fleet[1].exec("sh", "-c", f"docker logs --timestamps {NAMES[0]} 2>&1").stdout
    lines = [STAMP.sub("", text, count=1) for text in said.splitlines()]
    assert [text for text in lines if text.strip()] == shown
    assert any('"GET /health"' in text for text in shown)


def test_logs_are_followed(line: FleetLine, served: Any, tmp_path: Path) -> None:
    ask = "import urllib.request as r; r.urlopen('http://10.99.0.1:8888/health_new')"
    shown = tmp_path / "shown"

    def asked_and_shown() -> bool:
        line.fleet[2].exec("python3", "-c", ask)
        return "/health_new" in shown.read_text()

    with shown.open("w") as output:
        argv = line.argv("logs", "0", "-f", "-n", "0")
        follower = subprocess.Popen(argv, env=line.env, stdout=output)
    try:
        assert eventually(asked_and_shown, 30)
    finally:
        follower.terminate()
        assert follower.wait(30) == 143


def test_a_second_serve_is_refused_and_nothing_is_touched(line: FleetLine, served: Any) -> None:
    before = [inspected(line, number)["Id"] for number in range(1, 5)]
    result = line.run("serve")
    assert result.returncode == 1
    assert f"run {served['run']} has 4 live containers" in result.stderr
    assert "--replace" in result.stderr
    assert [inspected(line, number)["Id"] for number in range(1, 5)] == before


def test_a_paused_container_is_frozen_and_comes_back(line: FleetLine, served: Any) -> None:
    line.fleet[2].exec("docker", "pause", NAMES[1])
    try:
        status = line.json("status")
    finally:
        line.fleet[2].exec("docker", "unpause", NAMES[1])
    assert status["verdict"] == "degraded"
    assert status["reason"].startswith("rank 1 (spark2): a process of it is stopped")


def test_a_scheduler_that_died_in_a_living_container_is_named(line: FleetLine, served: Any) -> None:
    """The pid of a receipt is the container's own, and so is compared with its own."""
    said = log_path(run_dir(line, served), 1).read_text().splitlines()
    receipts = [json.loads(text) for text in said if text.startswith('{"tetraspark"')]
    program = f"import os; os.kill({receipts[0]['pid']}, 9)"
    line.fleet[2].exec("docker", "exec", NAMES[1], "python3", "-c", program)
    status = line.json("status")
    assert status["ranks"][1]["state"] == "broken"
    assert status["reason"].startswith("rank 1 (spark2): scheduler process ")


def test_L51_a_dead_rank_is_named_while_health_is_200(line: FleetLine, served: Any) -> None:
    line.fleet[3].exec("docker", "kill", NAMES[2])
    begun = time.monotonic()
    result = line.run("status", "--json")
    assert time.monotonic() - begun < 12
    status = json.loads(result.stdout)
    assert result.returncode == 1
    assert (status["verdict"], status["api"], status["health"]) == ("degraded", 200, 200)
    assert status["ranks"][2]["state"] == "exited"
    assert status["reason"] == "rank 2 (spark3): engine ended: killed by signal 9"


def test_a_node_without_power_is_unreachable_and_never_exited(line: FleetLine, served: Any) -> None:
    line.fleet[4].power_off()
    begun = time.monotonic()
    status = line.json("status")
    assert time.monotonic() - begun < 15
    assert [one["state"] for one in status["ranks"]] == [
        "running",
        "broken",
        "exited",
        "unreachable",
    ]
    assert "ssh failed: " in status["ranks"][3]["detail"]
    result = line.run("stop", "--json")
    stopped = json.loads(result.stdout)
    assert result.returncode == 1
    (problem,) = stopped["unverified"]
    assert problem["where"] == "spark4 (ssh root@node4)"
    assert problem["seen"].startswith("not known whether something of the line is left")
    assert stopped["removed"] == [f"{NAMES[rank]} on spark{rank + 1}" for rank in range(3)]
    line.fleet.heal()


def test_stop_by_name_needs_no_site_and_finds_what_was_left(line: FleetLine, served: Any) -> None:
    assert line.containers() == [NAMES[3]]
    line.site.rename(line.site.with_suffix(".away"))
    argv = [line.argv("stop")[0], "stop", "--line", "line", "--json"]
    done = subprocess.run(argv, env=line.env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["removed"] == [f"{NAMES[3]} on spark4"]
    assert line.containers() == []
    for node in line.fleet.nodes:
        assert not (node.root / FOLDER).exists()


def test_the_logs_outlive_the_containers(line: FleetLine, served: Any) -> None:
    for rank in range(3):
        text = log_path(run_dir(line, served), rank).read_text()
        assert text.count('{"tetraspark": "engine"') == 1
    last = log_path(run_dir(line, served), 0).read_text().splitlines()[-1]
    assert last.endswith("bye")
    assert labelled(line.state) == []
