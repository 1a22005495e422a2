"""The ssh runner on real nodes: quoting, streams, sessions, and how each failure is told."""

import json
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.fleet.nodes.fleet import Fleet
from tetraspark.errors import Problem, RunError
from tetraspark.fleet.command import NodeCommand
from tetraspark.fleet.login import Login
from tetraspark.fleet.ssh import SshRunner

pytestmark = pytest.mark.fleet
ECHO = "import json, sys; print(json.dumps(sys.argv[1:]))"
FIXTURE = HealthCheck.function_scoped_fixture  # one session for all examples is what is wanted
WORDS = st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))


@pytest.fixture
def runner(fleet: Fleet) -> Iterator[SshRunner]:
    with SshRunner([Login(node.name, node.name) for node in fleet.nodes], 3) as runner:
        yield runner


def sh(script: str, stdin: bytes | None = None, timeout: float = 20.0) -> NodeCommand:
    return NodeCommand(("sh", "-c", script), stdin, timeout)


def refusal(runner: SshRunner, node: str, command: NodeCommand) -> Problem:
    with pytest.raises(RunError) as caught:
        runner.run(node, command)
    return caught.value.problems[0]


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(words=WORDS)
@example(
    words=["", "'", '"', "a\nb", "\n", "$HOME", "*", "{a,b}", '{"a":1,"b":2}', "\\", "!!", "é漢"]
)
@example(words=["-n", "--", "~", "`id`", "a;b", "#", "a\r", "\x1b[31m", "%s", "&"])
def test_argv_arrives_word_by_word(runner: SshRunner, words: list[str]) -> None:
    result = runner.run("node1", NodeCommand(("python3", "-c", ECHO, *words)))
    assert (result.rc, json.loads(result.stdout)) == (0, words)


@pytest.mark.parametrize("name", ["if", "A=b", "time", "echo", "[["])
def test_the_first_word_is_a_program_and_never_shell_grammar(
    fleet: Fleet, runner: SshRunner, name: str
) -> None:
    program = fleet[1].root / "usr/local/bin" / name
    program.write_text('#!/bin/sh\nprintf "program %s" "$1"\n')
    program.chmod(0o755)
    try:
        assert runner.run("node1", NodeCommand((name, "-n"))).stdout == "program -n"
    finally:
        program.unlink()


@pytest.mark.parametrize("argv", [(), ("",), ("-v",), ("echo", "a\0b")])
def test_what_cannot_be_an_argv_is_refused(argv: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="argv"):
        NodeCommand(argv)


def test_streams_exit_code_and_stdin(runner: SshRunner, tmp_path: Path) -> None:
    result = runner.run("node2", sh("cat; echo problem >&2; exit 7", b"in\0put\n"))
    assert (result.rc, result.stdout, result.stderr) == (7, "in\0put\n", "problem\n")
    (tmp_path / "file").write_bytes(b"x" * 300_000)
    counted = runner.run("node2", NodeCommand(("wc", "-c"), tmp_path / "file"))
    assert counted.stdout.strip() == "300000"


def test_lines_come_as_they_are_written(runner: SshRunner) -> None:
    seen: list[tuple[str, float]] = []
    command = sh("echo one; sleep 0.5; echo two >&2; sleep 0.5; printf three")
    runner.run("node1", command, lambda line: seen.append((line, time.monotonic())))
    assert [line for line, _ in seen] == ["one", "two", "three"]
    assert seen[1][1] - seen[0][1] > 0.3
    assert seen[2][1] - seen[1][1] > 0.3


def test_one_session_a_node_that_ends_with_the_runner(fleet: Fleet) -> None:
    def logins() -> int:
        return (fleet[3].root / "var/log/sshd.log").read_text().count("Accepted publickey")

    with SshRunner([Login("node3", "node3")]) as runner:
        before = logins()
        threads = [
            threading.Thread(target=runner.run, args=("node3", sh("true"))) for _ in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert logins() == before + 1
        folder = Path(runner.folder)
        assert folder.stat().st_mode & 0o777 == 0o700
    assert not folder.exists()
    left = subprocess.run(["pgrep", "-f", str(folder)], capture_output=True, check=False)
    assert left.returncode == 1


def test_no_more_is_waited_for_than_was_asked(runner: SshRunner) -> None:
    begun = time.monotonic()
    problem = refusal(runner, "node1", sh("sleep 60", timeout=0.5))
    assert time.monotonic() - begun < 5
    assert problem.where == "node1 (ssh node1)"
    assert "after 0 s" in problem.seen or "after 1 s" in problem.seen


def test_interrupt_ends_what_runs_in_other_threads(runner: SshRunner) -> None:
    caught: list[BaseException] = []

    def work() -> None:
        try:
            runner.run("node1", sh("sleep 60", timeout=60))
        except RunError as error:
            caught.append(error)

    runner.run("node1", sh("true"))
    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.3)
    runner.interrupt()
    thread.join(5)
    assert not thread.is_alive()
    assert "interrupted" in str(caught[0])


def test_unknown_host(fleet: Fleet) -> None:
    with SshRunner([Login("spark9", "spark9.invalid")]) as runner:
        problem = refusal(runner, "spark9", sh("true"))
    assert "unknown host" in problem.seen
    assert problem.fix.startswith("getent hosts spark9.invalid")


def test_refused(fleet: Fleet, runner: SshRunner) -> None:
    fleet[4].sshd_stop()
    problem = refusal(runner, "node4", sh("true"))
    assert "refused" in problem.seen


def test_permission_denied(fleet: Fleet, tmp_path: Path) -> None:
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "k"], check=True
    )
    with SshRunner([Login("node1", fleet[1].address, "bob", tmp_path / "k")]) as runner:
        problem = refusal(runner, "node1", sh("true"))
    assert problem.where == f"node1 (ssh bob@{fleet[1].address})"
    assert "permission denied" in problem.seen
    assert problem.fix == f"ssh-copy-id bob@{fleet[1].address}"


def test_host_key_unknown_and_changed(fleet: Fleet) -> None:
    known = fleet.folder / "known_hosts"
    text = known.read_text()
    lines = text.splitlines(keepends=True)
    try:
        known.write_text("".join(lines[1:]))
        with SshRunner([Login("node1", "node1")]) as runner:
            unknown = refusal(runner, "node1", sh("true"))
        known.write_text(" ".join(["node1,10.99.0.1", *lines[1].split()[1:]]) + "\n")
        with SshRunner([Login("node1", "node1")]) as runner:
            changed = refusal(runner, "node1", sh("true"))
    finally:
        known.write_text(text)
    assert "host key unknown" in unknown.seen
    assert "host key changed" in changed.seen
    assert "ssh-keygen -R node1" in changed.fix


def test_a_dark_node_a_hung_node_and_a_session_that_dies(
    fleet: Fleet, runner: SshRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tetraspark.fleet.ssh.CONNECT_SECONDS", 2)
    runner.run("node4", sh("true"))
    fleet[3].power_off()
    fleet[2].freeze()
    found: dict[int, Problem] = {}

    def look(number: int) -> None:
        found[number] = refusal(runner, f"node{number}", sh("sleep 30", timeout=30))

    threads = [threading.Thread(target=look, args=(number,)) for number in (2, 3, 4)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    fleet[4].power_off()
    for thread in threads:
        thread.join()
    assert "no answer of sshd" in found[2].seen
    assert "no route" in found[3].seen or "timed out" in found[3].seen
    assert "session died" in found[4].seen


def test_nothing_of_a_session_is_needed_but_ssh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with SshRunner([Login("node1", "node1")]) as runner:
        problem = refusal(runner, "node1", sh("true"))
    assert (problem.where, problem.fix) == ("this machine", "sudo apt-get install openssh-client")


def test_secrets_travel_in_stdin(fleet: Fleet, runner: SshRunner) -> None:
    script = "read -r secret; ps -eo args; echo got ${#secret}"
    result = runner.run("node1", sh(script, b"hunter2-hunter2\n"))
    assert "got 15" in result.stdout
    assert "hunter2" not in result.stdout


SERVER = """
import http.server, os
server = http.server.HTTPServer(("127.0.0.1", 8765), http.server.SimpleHTTPRequestHandler)
if os.fork() == 0:
    os.setsid(); os.chdir("/root/served"); null = os.open("/dev/null", 2)
    for number in range(3): os.dup2(null, number)
    server.serve_forever()
"""


def test_a_way_to_a_port_of_the_nodes_loopback_opens_again_when_the_session_died(
    fleet: Fleet, runner: SshRunner
) -> None:
    (fleet[1].root / "root/served").mkdir(exist_ok=True)
    (fleet[1].root / "root/served/word").write_text("heard")
    fleet[1].exec("python3", "-c", SERVER)

    def heard() -> str:
        socket = runner.forward("node1", "127.0.0.1", 8765)
        assert socket.parent.stat().st_mode & 0o777 == 0o700
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(socket))) as client:
            return client.get("http://127.0.0.1:8765/word").text

    assert heard() == heard() == "heard"
    subprocess.run(
        ["ssh", "-F", "none", "-o", f"ControlPath={runner.folder}/0", "-O", "exit", "node1"],
        check=True,
        capture_output=True,
    )
    assert heard() == "heard"


def test_there_is_no_way_to_a_node_out_of_reach(fleet: Fleet, runner: SshRunner) -> None:
    fleet[2].sshd_stop()
    with pytest.raises(RunError, match="ssh failed: refused"):
        runner.forward("node2", "127.0.0.1", 8765)
