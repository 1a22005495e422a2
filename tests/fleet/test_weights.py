"""`tetraspark weights` on four nodes: copied whole, resumed, proved; what is wrong is named."""

import hashlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.fleet.nodes.fleet import Fleet
from tests.fleet.nodes.machine import Node
from tests.serving import COMMAND, ROOT
from tests.weights.checkpoints import shard_name, write_checkpoint
from tetraspark.cli.main import app

pytestmark = pytest.mark.fleet
HOMES = {1: "root", 2: "root", 3: "home/alice", 4: "root"}
PATH = "models/big"
SHARD_BYTES = 12 << 20
SHARDS = 4


class Weights:
    """A site of the four nodes, whose third is alice's, and the real command on it."""

    def __init__(self, fleet: Fleet, folder: Path, mode: str = 'mode = "copy"') -> None:
        self.fleet = fleet
        self.state = folder / "state"
        self.site = folder / "site.toml"
        nodes = [
            f'[[nodes]]\nname = "node{n}"\nhost = "10.99.0.{n}"\nssh_host = "node{n}"\n'
            f'user = "{"alice" if "alice" in home else "root"}"\n'
            for n, home in HOMES.items()
        ]
        text = (ROOT / "sites/four-sparks-switch.toml").read_text()
        head, rest = text.split("[[nodes]]", 1)
        rest = rest[rest.index("[model]") :]
        weights, fabric = rest.index("[weights]"), rest.index("[fabric]")
        rest = rest[:weights] + f"[weights]\n{mode}\n\n" + rest[fabric:]
        rest = rest.replace("~/models/DeepSeek-V4.1-Flash", f"~/{PATH}")
        ssh, env = rest.index("[ssh]"), rest.index("[env]")
        self.site.write_text(head + "\n".join(nodes) + "\n" + rest[:ssh] + rest[env:])

    def folder(self, number: int) -> Path:
        """The checkpoint's folder of a node, seen from this machine."""
        return self.fleet[number].root / HOMES[number] / PATH

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [COMMAND, "weights", *words, "--site", str(self.site), "--json"],
            env=os.environ | {"TETRASPARK_STATE": str(self.state), "COLUMNS": "200"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def call(self, *words: str) -> Result:
        """Run a verb in this process, which spares its start."""
        env = {"TETRASPARK_STATE": str(self.state), "TETRASPARK_SITE": str(self.site)}
        return CliRunner().invoke(app, ["weights", *words], env=env)

    def run(self, *words: str, code: int = 0) -> dict[str, Any]:
        found = self.call(*words, "--json")
        assert found.exit_code == code, found.output
        value: dict[str, Any] = json.loads(found.stdout)
        return value


@pytest.fixture
def weights(fleet: Fleet, tmp_path: Path) -> Weights:
    """The head has the checkpoint, and a key that lets it in everywhere; the workers nothing."""
    head = fleet[1]
    ssh = head.root / "root/.ssh"
    if not (ssh / "id_ed25519").exists():
        head.exec("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "/root/.ssh/id_ed25519")
    (ssh / "known_hosts").write_text("".join(node.host_key for node in fleet.nodes))
    public = (ssh / "id_ed25519.pub").read_text()
    for number, home in HOMES.items():
        keys = fleet[number].root / home / ".ssh/authorized_keys"
        if public not in keys.read_text():
            keys.write_text(keys.read_text() + public)
    made = Weights(fleet, tmp_path)
    for number, home in HOMES.items():
        fleet[number].exec("rm", "-rf", f"/{home}/models", f"/{home}/.cache/tetraspark")
    write_checkpoint(made.folder(1), SHARD_BYTES, SHARDS)
    return made


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def wait_for(done: Callable[[], bool], what: str, seconds: float = 40.0) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s for {what}"
        time.sleep(0.05)


def rsyncs(node: Node) -> str:
    return node.exec("sh", "-c", "ps -C rsync -o args=", check=False).stdout


def volumes(node: Node) -> set[str]:
    return set(node.exec("docker", "volume", "ls", "-q").stdout.split())


def arrived(folder: Path) -> int:
    partial = folder / ".tetraspark-partial"
    return sum(one.stat().st_size for one in partial.glob("*")) if partial.is_dir() else 0


def test_a_copy_that_was_killed_goes_on_and_a_changed_byte_is_found(
    weights: Weights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet, total = weights.fleet, (SHARD_BYTES * SHARDS)
    mine = weights.folder(2) / "notes.txt"
    fleet[2].exec("mkdir", "-p", f"/root/{PATH}")
    mine.write_text("mine")
    fleet[1].exec(
        *("tc", "qdisc", "add", "dev", "eth0", "root", "tbf"),
        *("rate", "80mbit", "burst", "256k", "latency", "50ms"),
    )
    process = weights.start("copy")

    def begun() -> bool:
        assert process.poll() is None, process.communicate()
        return min(map(arrived, map(weights.folder, (2, 3, 4)))) > total // 25

    wait_for(begun, "a part on each worker")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=20)
    # A receiver still writes what had reached its node when the sender ended.
    wait_for(lambda: not any(map(rsyncs, fleet.nodes)), "the copy's end on every node")
    fleet[1].exec("tc", "qdisc", "del", "dev", "eth0", "root")
    parts = {number: arrived(weights.folder(number)) for number in (2, 3, 4)}
    assert all(total // 25 < size < total for size in parts.values()), parts
    assert not list(weights.folder(3).glob("*.safetensors")), "a part has a file's own name"

    plan = weights.run("copy", "--dry-run")
    assert {one["node"]: one["kept"] for one in plan["transfers"]} == {
        f"node{number}": size for number, size in parts.items()
    }
    report = weights.run("copy")
    assert [one["folder"] for one in report["nodes"]] == [
        f"/{HOMES[number]}/{PATH}" for number in (2, 3, 4)
    ]
    assert {one["tree"] for one in report["nodes"]} == {report["tree"]}
    for number in (2, 3, 4):
        for file in weights.folder(1).iterdir():
            copy = weights.folder(number) / file.name
            assert copy.read_bytes() == file.read_bytes()
        assert not (weights.folder(number) / ".tetraspark-partial").exists()
    assert mine.read_text() == "mine"

    shard = weights.folder(3) / shard_name(2, SHARDS)
    state = shard.stat()
    data = bytearray(shard.read_bytes())
    data[SHARD_BYTES // 2] ^= 1
    shard.write_bytes(data)
    os.utime(shard, ns=(state.st_atime_ns, state.st_mtime_ns))
    found = weights.run("verify", "--full", code=1)
    (problem,) = found["problems"]
    assert problem["where"] == f"node3 /home/alice/{PATH}/{shard.name}"
    assert problem["seen"].startswith("sha256 ") and "of the receipt" in problem["wanted"]
    assert problem["fix"] == "tetraspark weights copy --node node3"
    repaired = weights.run("copy", "--node", "node3")
    assert repaired["nodes"][0]["sent"] == repaired["nodes"][0]["replaced"] == [shard.name]
    again = weights.run("verify")
    assert again["recorded"] and again["nodes"]["node2"]["extra"] == ["notes.txt"]
    assert again["nodes"]["node3"]["cached"] == len(list(weights.folder(3).iterdir()))

    sums = f"{sha256(weights.folder(1) / shard.name)}  {shard.name}\n"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "SHA256SUMS").write_text(sums)
    assert weights.run("verify", "--sums", "SHA256SUMS")["reference"].startswith("SHA256SUMS and")
    assert weights.run("verify", "--node", "node1", "--renew")["reference"] == "node1"
    evicted = weights.run("evict")
    assert [one["node"] for one in evicted["nodes"]] == ["node1", "node2", "node3", "node4"]

    status = weights.run("status")
    assert {one["node"]: one["folder"] for one in status["nodes"]} == {
        f"node{number}": f"/{home}/{PATH}" for number, home in HOMES.items()
    }
    assert [one["verified"] is None for one in status["nodes"]] == [False, True, True, True]
    assert status["nodes"][0]["tree"] == report["tree"] and not status["nodes"][0]["changed"]


def test_a_full_disk_and_a_login_that_is_not_there_are_told_before_anything_is_sent(
    weights: Weights,
) -> None:
    fleet = weights.fleet
    fleet[4].fill_disk(leave=8 << 20)
    keys = fleet[2].root / "root/.ssh/authorized_keys"
    keys.write_text((fleet[2].root / "etc/tetraspark/authorized_keys").read_text())
    plan = weights.run("copy", "--dry-run", code=1)
    assert [one["node"] for one in plan["transfers"]] == ["node3"]
    login, room = plan["problems"]
    assert login["where"].startswith("node1 -> node2 (ssh root@10.99.0.2)")
    assert "permission denied" in login["seen"]
    assert login["fix"].startswith("on node1: ssh-keygen -t ed25519, unless it has a key")
    assert login["fix"].endswith("ssh-copy-id root@10.99.0.2")
    assert room["where"] == f"node4 /root/{PATH}"
    assert "bytes free" in room["seen"] and "make room for" in room["fix"]
    assert not weights.folder(3).exists(), "a dry run made a folder"


def test_volumes_of_nfs_are_made_compared_and_removed(weights: Weights, tmp_path: Path) -> None:
    """The server is a machine that is none of the nodes; what mounts from it is not tried."""
    fleet, name = weights.fleet, "tetraspark-four-sparks-switch-weights"
    nfs = Weights(fleet, tmp_path, 'mode = "nfs"\nnfs_server = "10.99.0.77"')
    nfs.site.write_text(nfs.site.read_text().replace('"alice"', '"root"'))
    before = volumes(fleet[2])
    plan = nfs.run("share")
    assert not plan["by_head"]
    assert [one["node"] for one in plan["steps"]] == ["node2", "node3", "node4"]
    assert volumes(fleet[2]) == before, "a plan changed something"
    done = nfs.run("share", "--apply", code=1)
    assert [one["node"] for one in done["done"]] == ["node2", "node3", "node4"]
    reads = [(one["id"], one["verdict"], one["fix"]) for one in done["checks"]]
    fix = "tetraspark build, then: tetraspark weights share --apply"
    assert reads == [("WEIGHTS.READ", "unknown", fix)] * 3
    fleet[3].exec("docker", "volume", "rm", name)
    fleet[3].exec("docker", "volume", "create", name)
    status = nfs.run("status", code=1)
    checks = {one["node"]: one["checks"][-1] for one in status["nodes"]}
    assert checks["node2"]["id"] == "WEIGHTS.VOLUME" and checks["node2"]["verdict"] == "ok"
    assert "docker volume rm" in checks["node3"]["fix"] and checks["node3"]["verdict"] == "failed"

    weights.site.write_text(nfs.site.read_text().replace('mode = "nfs"', 'mode = "copy"').replace(
        'nfs_server = "10.99.0.77"', ""))  # fmt: skip
    left = weights.run("status", code=1)
    found = {one["node"]: one["checks"][-1]["observed"] for one in left["nodes"]}
    assert "is left over" in found["node2"] and "is left over" not in found["node3"]
    planned = weights.run("share", "--remove", "--dry-run")
    assert [one["node"] for one in planned["steps"]] == ["node2", "node4"]
    removed = weights.run("share", "--remove")
    assert [one["node"] for one in removed["done"]] == ["node2", "node4"], "node3's is not ours"
    assert volumes(fleet[2]) == before
    assert volumes(fleet[3]) == {*before, name}
    fleet[3].exec("docker", "volume", "rm", name)
