"""Starts on four nodes that fail: each says which node or rank and why, and leaves nothing."""

import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.fleet.line import TAG, FleetLine, give_image
from tests.fleet.nodes.fleet import Fleet
from tests.serving import eventually
from tetraspark.errors import RunError
from tetraspark.fleet.command import NodeCommand
from tetraspark.fleet.ssh import SshRunner

pytestmark = pytest.mark.fleet
HANG = {"hang": "KV Cache is allocated"}
WORDS = st.lists(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=30
)
ECHO = "import json, sys; print(json.dumps(sys.argv[1:]))"


@pytest.fixture(scope="module", autouse=True)
def image(running_fleet: Fleet) -> None:
    give_image(running_fleet)


@pytest.fixture(scope="module")
def nodes(running_fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshRunner]:
    """Sessions that last for all tests whose nodes stay up."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{running_fleet.bin}:{os.environ['PATH']}")
        with FleetLine(running_fleet, tmp_path_factory.mktemp("nodes")).nodes() as made:
            yield made


@pytest.fixture
def line(fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FleetLine]:
    monkeypatch.setenv("TETRASPARK_STATE", str(tmp_path / "state"))
    made = FleetLine(fleet, tmp_path)
    yield made
    fleet.heal()
    made.clean()


def in_the_middle(line: FleetLine, action: Callable[[], object]) -> threading.Thread:
    """Do something as soon as all four containers are there."""

    def wait() -> None:
        assert eventually(lambda: len(line.containers()) == 4, 30)
        action()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


@settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(words=WORDS)
@example(words=["--json-model-override-args", '{"a":1,"b":2}', "", "'", "a\nb", "$HOME", "{a,b}"])
def test_L03_an_argv_arrives_in_the_container_word_by_word(
    fleet: Fleet, nodes: SshRunner, words: list[str]
) -> None:
    argv = ("docker", "run", "--rm", "--network=none", TAG, "python3", "-c", ECHO, *words)
    result = nodes.run("spark1", NodeCommand(argv))
    assert (result.rc, json.loads(result.stdout)) == (0, words)


def test_a_rank_that_ends_at_once_is_the_headline(line: FleetLine, nodes: SshRunner) -> None:
    line.behave("node3", {"fail": "ValueError: no kernel for this device"})
    for number in (1, 2, 4):
        line.behave(f"node{number}", {"fail": "RuntimeError: Connection closed by peer"})
    (problem,) = line.fails(nodes)
    assert problem.where == "rank 2 (spark3)"
    assert problem.seen == "ValueError: no kernel for this device"
    assert problem.fix == "tetraspark logs 2"
    assert line.containers() == []
    (log,) = line.state.glob("*/rank2.log")
    assert "ValueError: no kernel for this device\n" in log.read_text()


def test_a_killed_container_is_told_as_killed(line: FleetLine, nodes: SshRunner) -> None:
    line.behave("node2", HANG)
    kill = in_the_middle(line, lambda: line.fleet[2].exec("docker", "kill", "tetraspark-line-r1"))
    (problem,) = line.fails(nodes)
    kill.join()
    assert problem.where == "rank 1 (spark2)"
    assert problem.seen == "engine ended: killed by signal 9"
    assert line.containers() == []


def test_L56_a_quiet_start_names_phase_seconds_and_the_slowest_ranks_last_line(
    line: FleetLine, nodes: SshRunner
) -> None:
    line.site.write_text(line.site.read_text().replace("load_seconds = 20", "load_seconds = 4"))
    line.behave("node4", HANG)
    (problem,) = line.fails(nodes)
    assert problem.where == "rank 3 (spark4)"
    assert re.match(r"phase load not over after \d+ s, last line: \[", problem.seen)
    assert problem.seen.endswith("TP3] KV Cache is allocated")
    assert "deadlines.load_seconds" in problem.fix
    assert line.containers() == []


def test_L61_an_answer_of_another_text_is_no_start(line: FleetLine, nodes: SshRunner) -> None:
    line.behave("node1", {"answer": "41 41 41 41"})
    (problem,) = line.fails(nodes)
    assert problem.seen == "the answer '41 41 41 41'"
    assert problem.wanted == "an answer with '42'"
    assert line.containers() == []


def test_a_node_that_goes_down_in_the_middle_is_named_and_the_others_are_cleaned(
    line: FleetLine,
) -> None:
    line.behave("node3", HANG)
    cut = in_the_middle(line, lambda: line.fleet[3].power_off())
    with line.nodes() as nodes:
        lost, unverified = line.fails(nodes)
    cut.join()
    assert lost.where == "rank 2, spark3 (ssh root@node3)"
    assert re.match("(import|load): ssh failed: ", lost.seen)
    assert unverified.where == "spark3 (ssh root@node3)"
    assert unverified.seen.startswith("not known whether something of the line is left there: ")
    assert "tetraspark stop" in unverified.fix
    line.fleet.heal()
    assert line.containers() == ["tetraspark-line-r2"]


def test_L16_a_node_out_of_reach_is_named_with_the_phase_before_anything_starts(
    line: FleetLine,
) -> None:
    line.fleet[2].sshd_stop()
    with line.nodes() as nodes:
        (problem,) = line.fails(nodes)
    assert problem.where == "spark2 (ssh root@node2)"
    assert problem.seen.startswith("launch: ssh failed: refused, during login")
    assert line.containers() == []
    assert not line.state.exists()


def test_a_full_disk_of_a_node_is_told(line: FleetLine, nodes: SshRunner) -> None:
    line.fleet[2].fill_disk()
    assert [one.where for one in line.fails(nodes)] == ["spark2 DISK.ROOM"]
    assert not list(line.state.glob("*/plan.json"))
    problems = line.fails(nodes, "DISK.ROOM")
    assert problems[0].where.startswith("spark2")
    assert "No space left on device" in problems[0].seen or "disk full" in problems[0].seen
    assert line.containers() == []


@pytest.mark.parametrize(
    ("command", "where", "seen", "fix"),
    [
        (
            ("docker", "rmi", "--force", TAG),
            "IMAGE.PRESENT",
            "preflight: no image ",
            "tetraspark build --site ",
        ),
        (
            ("sh", "-c", "kill $(cat /run/docker.pid)"),
            "docker",
            "no daemon",
            "systemctl start docker",
        ),
    ],
)
def test_what_docker_lacks_on_a_node_is_told_before_anything_starts(
    line: FleetLine, nodes: SshRunner, command: tuple[str, ...], where: str, seen: str, fix: str
) -> None:
    node = line.fleet[4]
    if command[0] == "sh":
        node.docker_stop()
    else:
        node.exec(*command)
    try:
        (problem,) = line.fails(nodes)
    finally:
        if command[0] == "docker":
            give_image(line.fleet)
    assert problem.where == f"spark4 {where}"
    assert seen in problem.seen
    assert fix in problem.fix
    line.fleet.heal()


def test_a_model_that_is_not_there_is_told_and_no_folder_is_made(
    line: FleetLine, nodes: SshRunner
) -> None:
    line.site.write_text(line.site.read_text().replace("/srv/model", "/srv/modle"))
    told = line.fails(nodes)
    assert [one.where for one in told] == [f"spark{n} CHECKPOINT.FOLDER" for n in (1, 2, 3, 4)]
    assert told[0].seen == "preflight: /srv/modle: no such folder"
    assert not list(line.state.glob("*/plan.json"))
    problems = line.fails(nodes, "CHECKPOINT")
    assert {problem.where for problem in problems} == {
        "spark2 docker",
        "spark3 docker",
        "spark4 docker",
    }
    assert "start of rank 1: no such folder: " in problems[0].seen
    assert "/srv/modle" in problems[0].seen
    assert not (line.fleet[2].root / "srv/modle").exists()
    assert line.containers() == []


def test_stale_containers_of_another_launcher_are_refused_alive_and_removed_dead(
    line: FleetLine, nodes: SshRunner
) -> None:
    labels = ("tetraspark.line=line", "tetraspark.run=20200101-000000-0", "tetraspark.rank=1")
    words = [word for label in labels for word in ("--label", label)]
    name = "--name=tetraspark-line-r1"
    node = line.fleet[2]
    node.exec("docker", "run", "--detach", name, *words, TAG, "sh", "-c", "echo old; sleep 600")
    (problem,) = line.fails(nodes)
    assert problem.seen == "run 20200101-000000-0 has 1 live containers"
    node.exec("docker", "kill", "tetraspark-line-r1")
    served = line.serve(nodes)
    assert served.answer.text == "42"
    assert len(line.containers()) == 4
    old = line.state / "20200101-000000-0" / "rank1.log"
    assert old.read_text() == "old\n"
    replaced = line.serve(nodes, replace=True)
    assert replaced.run != served.run
    assert len(line.containers()) == 4


def test_of_two_serves_at_once_one_serves_and_waits_for_a_slow_node(
    line: FleetLine, nodes: SshRunner
) -> None:
    line.fleet[2].slow("512kbit")
    ends: list[object] = []

    def one() -> None:
        try:
            ends.append(line.serve(nodes).run)
        except RunError as error:
            ends.append(error.problems)

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (problems,) = (one for one in ends if isinstance(one, tuple))
    assert "one launcher at a time" in str(problems[0]) or "live containers" in str(problems[0])
    assert len(line.containers()) == 4


def test_a_launcher_that_is_killed_leaves_what_stop_finds(line: FleetLine) -> None:
    line.behave("node2", HANG)
    with subprocess.Popen(line.argv("serve"), env=line.env, stderr=subprocess.DEVNULL) as launcher:
        assert eventually(lambda: len(line.containers()) == 4, 60)
        launcher.send_signal(signal.SIGKILL)
    status = line.json("status")
    assert status["verdict"] == "degraded"
    assert "the launcher is gone" in status["reason"]
    begun = time.monotonic()
    assert line.run("stop").returncode == 0
    assert time.monotonic() - begun < 30
    assert line.containers() == []
    assert not (line.fleet[1].root / "root/.local/state/tetraspark/line/node").exists()
