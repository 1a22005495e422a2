"""What a probe may ask, and what it finds here."""

import ast
import os
import socket
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.modes import bound_by_modes, folder_of_mode
from tetraspark.fleet.command import NodeCommand, OnLine, Result
from tetraspark.fleet.facts import Facts, Said, Wanted
from tetraspark.fleet.inside.look import look
from tetraspark.fleet.probe import probe, probe_all
from tetraspark.fleet.program import program


@pytest.mark.parametrize(
    "argv",
    [
        ("rm", "-rf", "/"),
        ("ip", "addr"),
        ("ip", "-j", "addr", "add", "10.0.0.1/24", "dev", "lo"),
        ("devlink", "-j", "dev", "reload", "pci/0000:01:00.0"),
        ("docker", "rm", "x"),
    ],
)
def test_a_command_that_could_change_something_is_no_wish(argv: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="only reads"):
        Wanted(commands={"it": argv})


def test_wishes_add_up() -> None:
    first = Wanted(files=("/a",), ports=(1,), commands={"one": ("uname", "-r")})
    second = Wanted(files=("/a", "/b"), space=("~",), commands={"two": ("lsmod",)})
    assert first | second == Wanted(
        files=("/a", "/b"),
        ports=(1,),
        space=("~",),
        commands={"one": ("uname", "-r"), "two": ("lsmod",)},
    )
    with pytest.raises(ValueError, match="two commands"):
        first | Wanted(commands={"one": ("uname", "-m")})


class Here:
    """Runs a node's command on this machine, as ssh would."""

    def __init__(self, down: str = "") -> None:
        self.down = down

    def run(self, node: str, command: NodeCommand, on_line: OnLine | None = None) -> Result:
        if node == self.down:
            return Result(127, "", "python3: not found\n")
        assert isinstance(command.stdin, bytes)
        argv = [sys.executable, *command.argv[1:]]
        done = subprocess.run(argv, input=command.stdin, capture_output=True, check=False)
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    def copy(self, node: str, folder: Path, target: str, timeout: float) -> None:
        raise NotImplementedError

    def interrupt(self) -> None:
        raise NotImplementedError


def test_a_probe_finds_what_is_here(tmp_path: Path) -> None:
    (tmp_path / "a'b.txt").write_text("with a quote")
    (tmp_path / "big").write_bytes(b"x" * 100_000)
    (tmp_path / "link").symlink_to(tmp_path / "big")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        wanted = Wanted(
            files=(f"{tmp_path}/a*", f"{tmp_path}/big", f"{tmp_path}/absent"),
            links=(f"{tmp_path}/link",),
            sizes=(f"{tmp_path}/*", f"{tmp_path}/absent"),
            space=(f"{tmp_path}/not/there/yet", "~"),
            ports=(port, 1),
            commands={"release": ("uname", "-r"), "none": ("lldpctl", "-f", "json")},
        )
        facts = probe(Here(), "node1", wanted)
    assert facts.files[f"{tmp_path}/a'b.txt"] == "with a quote"
    assert len(facts.files[f"{tmp_path}/big"]) == 65536
    assert f"{tmp_path}/absent" not in facts.files
    assert facts.links == {f"{tmp_path}/link": f"{tmp_path}/big"}
    assert facts.sizes[f"{tmp_path}/big"] == 100_000
    assert facts.globs[f"{tmp_path}/absent"] == ()
    assert facts.space[f"{tmp_path}/not/there/yet"].path == str(tmp_path)
    assert 0 < facts.space["~"].free <= facts.space["~"].total
    assert facts.listeners[port].startswith(f"pid {os.getpid()} (")
    assert 1 not in facts.listeners
    assert facts.commands["release"] == Said(0, os.uname().release + "\n", "")
    assert facts.commands["none"].rc in (0, 127)
    assert facts.expand("~/models") == f"{facts.home}/models"
    assert facts.expand("/~/models") == "/~/models"


def test_what_is_no_file_is_not_opened_and_loops_lead_nowhere(tmp_path: Path) -> None:
    """A link loop, a link to nowhere, a pipe that nobody writes to, and a folder."""
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "round").symlink_to(tmp_path / "trip")
    (tmp_path / "trip").symlink_to(tmp_path / "round")
    (tmp_path / "lost").symlink_to(tmp_path / "absent")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("text")
    everything = (f"{tmp_path}/*",)
    inside = f"{tmp_path}/loop/below"
    wanted = Wanted(everything, everything, everything, (inside,), shards=everything)
    facts = probe(Here(), "node1", wanted)
    assert facts.files == {f"{tmp_path}/file": "text"}
    assert facts.sizes == {f"{tmp_path}/file": 4}
    assert facts.links[f"{tmp_path}/lost"] == f"{tmp_path}/absent"
    assert {f"{tmp_path}/{name}" for name in ("loop", "round", "trip")} <= facts.links.keys()
    assert facts.space[inside].path == str(tmp_path)


@pytest.mark.parametrize("mode", [0o444, 0o000])
def test_a_folder_that_may_not_be_looked_into_is_no_traceback(mode: int) -> None:
    with folder_of_mode(mode) as folder:
        wish = (f"{folder}/*", f"{folder}/config.json")
        wanted = Wanted(wish, wish, wish, (f"{folder}/below",), shards=wish)
        with bound_by_modes():
            facts = Facts.of("node1", look(asdict(wanted)))
    assert (facts.files, facts.sizes, facts.declared) == ({}, {}, {})
    assert facts.space[f"{folder}/below"].path == str(folder)


def test_a_probe_over_ssh_knows_the_address_that_it_came_in_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    assert probe(Here(), "node1", Wanted()).ssh == ""
    monkeypatch.setenv("SSH_CONNECTION", "192.168.1.2 50022 192.168.1.11 22")
    assert probe(Here(), "node1", Wanted()).ssh == "192.168.1.11"


def test_a_node_without_python_is_told_apart_from_the_others() -> None:
    found = probe_all(Here(down="node2"), {"node1": Wanted(), "node2": Wanted()})
    assert isinstance(found["node1"], Facts)
    problem = found["node2"].problems[0] if not isinstance(found["node2"], Facts) else None
    assert problem is not None
    assert (problem.where, problem.seen) == (
        "node2",
        "the probe ended with 127: python3: not found",
    )
    assert "apt-get install python3" in problem.fix


@pytest.mark.parametrize("name", ["look", "containers"])
def test_a_program_that_is_sent_reads_on_the_oldest_python_it_names(name: str) -> None:
    ast.parse(program(name, ["/it's", 'a"b\\n']), feature_version=(3, 9))
