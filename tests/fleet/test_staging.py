"""Copies of a build context on real nodes: all of it arrives, nothing else is touched."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.nodes.fleet import Fleet
from tetraspark.errors import Problem, RunError
from tetraspark.fleet.command import NodeCommand
from tetraspark.fleet.login import Login
from tetraspark.fleet.ssh import SshRunner
from tetraspark.fleet.staging import MARKER, stage
from tetraspark.images import tree

pytestmark = pytest.mark.fleet
HOME = "root/.cache/tetraspark"


@pytest.fixture
def runner(fleet: Fleet) -> Iterator[SshRunner]:
    with SshRunner([Login(node.name, node.name) for node in fleet.nodes]) as runner:
        yield runner


@pytest.fixture
def context(tmp_path: Path) -> Path:
    """A tree whose names have tripped copies up: folders of one name at two depths, dots, odd."""
    folder = tmp_path / "con:text 'x'"
    for name in ("models/w", "src/models/a.py", ".hidden", "CVS/x", "a b/é\n$HOME", "core", "x~"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (folder / "src/models/a.py").chmod(0o755)
    return folder


def refusal(runner: SshRunner, node: str, context: Path, name: str) -> Problem:
    with pytest.raises(RunError) as caught:
        stage(runner, node, context, name)
    return caught.value.problems[0]


def test_the_whole_tree_arrives_and_hashes_the_same(runner: SshRunner, context: Path) -> None:
    target = stage(runner, "node1", context, "whole")
    script = Path(tree.__file__)
    seen = runner.run("node1", NodeCommand(("python3", "-", target), script)).stdout.strip()
    assert seen == tree.tree_sha256(context)
    (context / "models/w").unlink()
    (context / "core").write_text("CORE")
    stage(runner, "node1", context, "whole")
    seen = runner.run("node1", NodeCommand(("python3", "-", target), script)).stdout.strip()
    assert seen == tree.tree_sha256(context)


def test_only_a_folder_of_ours_is_ever_cleaned(
    fleet: Fleet, runner: SshRunner, context: Path
) -> None:
    home = fleet[2].root / HOME
    (home / "theirs").mkdir(parents=True)
    (home / "theirs/thesis").write_text("x")
    (home / "elsewhere").mkdir()
    (home / "elsewhere/thesis").write_text("x")
    (home / "link").symlink_to("elsewhere")
    (home / "inner").mkdir()
    (home / f"inner/{MARKER}").touch()
    (home / "inner/context").symlink_to("../elsewhere")
    (home / "file").write_text("x")
    for name, seen in {
        "theirs": "a folder with something in it",
        "link": "a symbolic link",
        "inner": "a symbolic link",
        "file": "not a folder",
    }.items():
        problem = refusal(runner, "node2", context, name)
        assert problem.where == f"node2:.cache/tetraspark/{name}"
        assert problem.seen.startswith(seen)
    assert (home / "theirs/thesis").exists()
    assert (home / "elsewhere/thesis").exists()
    (home / "empty").mkdir()
    stage(runner, "node2", context, "empty")
    assert (home / "empty/context/core").exists()


def test_a_full_disk_is_told_and_the_next_copy_works(
    fleet: Fleet, runner: SshRunner, context: Path
) -> None:
    (context / "large").write_bytes(b"x" * (4 << 20))
    fleet[3].fill_disk(leave=1 << 20)
    problem = refusal(runner, "node3", context, "full")
    assert problem.where == "node3:.cache/tetraspark/full/context"
    assert problem.seen.startswith("rsync failed with 11 ")
    assert "No space left on device" in problem.seen
    assert problem.wanted == "room on the node's disk"
    fleet[3].heal()
    stage(runner, "node3", context, "full")
    fleet[3].fill_disk()
    problem = refusal(runner, "node3", context, "other")
    assert "No space left on device" in problem.seen


def test_a_session_that_died_is_not_rsyncs_fault(
    fleet: Fleet, context: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tetraspark.fleet.ssh.CONNECT_SECONDS", 2)
    with SshRunner([Login("node4", "node4")], alive_seconds=3) as runner:
        runner.run("node4", NodeCommand(("true",)))
        fleet[4].freeze()
        problem = refusal(runner, "node4", context, "frozen")
    assert problem.where == "node4 (ssh node4)"
    assert "session died" in problem.seen


def test_rsync_missing_on_the_node(fleet: Fleet, runner: SshRunner, context: Path) -> None:
    program = fleet[1].root / "usr/bin/rsync"
    kept = program.rename(program.with_name("rsync.kept"))
    try:
        problem = refusal(runner, "node1", context, "missing")
    finally:
        kept.rename(program)
    assert problem.wanted == "rsync on the node"
    assert problem.fix == "ssh node1 sudo apt-get install rsync"
