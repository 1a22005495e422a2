"""`tetraspark pack` on four nodes: the head from its own folder, workers from a docker volume."""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.engram.checkpoint import ROWS, Made, make_checkpoint
from tests.fleet.nodes.base_image import make_base
from tests.fleet.nodes.fleet import Fleet
from tests.fleet.nodes.machine import Node
from tests.fleet.sources import BASE, site
from tests.serving import COMMAND
from tetraspark.engram.sample import verify_sample
from tetraspark.engram.shard import shard_checks, wanted
from tetraspark.fleet.login import Login
from tetraspark.fleet.probe import probe
from tetraspark.fleet.ssh import SshRunner

pytestmark = pytest.mark.fleet
WEIGHTS = '[weights]\nmode = "nfs"\nnfs_server = "10.99.0.1"\nnfs_volume = "v41"\n'
VOLUME = ("--driver", "local", "--opt", "type=none", "--opt", "o=bind")


def pack(path: Path, *words: str) -> tuple[int, dict[str, Any]]:
    argv = [str(COMMAND), "pack", "--site", str(path), "--json", *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, found


def furnish(fleet: Fleet, model: Path) -> None:
    """Bring the checkpoint: to the head's folder, and to what stands for a mount elsewhere."""
    image = f"{BASE.split(':')[0]}@{make_base(fleet.registry, BASE.split(':')[0])}"

    def one(node: Node) -> None:
        head = node is fleet[1]
        place = "root/models/DeepSeek-V4.1-Flash" if head else "srv/v41"
        folder = node.root / place
        folder.mkdir(parents=True)
        for file in model.iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
        if not head:
            node.exec("docker", "volume", "create", *VOLUME, "--opt", "device=/srv/v41", "v41")
            node.exec("docker", "pull", "--quiet", image)
            node.exec("docker", "tag", image, "tetraspark:pack")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, fleet.nodes))


def shard(node: Node, rank: int, layer: int) -> Path:
    return node.root / f"root/engram/engram-l{layer}-r{rank}of4.bin"


def require_rows(fleet: Fleet, made: Made) -> None:
    for rank, node in enumerate(fleet.nodes):
        for layer, rows in ROWS.items():
            data = shard(node, rank, layer).read_bytes()
            assert data[4096:] == made.records(layer, rows * rank // 4, rows * (rank + 1) // 4)


def test_each_node_gets_its_own_rows_and_wrong_ones_are_named(fleet: Fleet, tmp_path: Path) -> None:
    made = make_checkpoint(tmp_path / "model")
    furnish(fleet, made.path)
    path = tmp_path / "site.toml"
    path.write_text(site("pack").replace('[weights]\nmode = "local"\n', WEIGHTS))

    code, planned = pack(path, "--dry-run")
    assert (code, planned["split"]) == (0, "rows")
    assert [node["argv"][0] for node in planned["nodes"]] == ["python3", *["docker"] * 3]
    assert not (fleet[1].root / "root/engram").exists()

    code, report = pack(path)
    assert code == 0, report
    states = [one["state"] for node in report["nodes"] for one in node["shards"]]
    assert states == ["packed"] * 8
    require_rows(fleet, made)
    # Rank 2 gets rank 0's shards under its own name, as a copied folder would have them.
    for layer in ROWS:
        mine, theirs = shard(fleet[3], 2, layer), shard(fleet[1], 0, layer)
        for ending in (".bin", ".json"):
            mine.with_suffix(ending).write_bytes(theirs.with_suffix(ending).read_bytes())
    damaged = bytearray(shard(fleet[2], 1, 14).read_bytes())
    damaged[4096] ^= 1
    shard(fleet[2], 1, 14).write_bytes(damaged)
    names = [node["node"] for node in report["nodes"]]
    with SshRunner([Login(name, fleet[n + 1].name) for n, name in enumerate(names)]) as runner:
        facts = probe(runner, names[2], wanted("~/engram", 2, 4))
        rows = {one.id: one for one in shard_checks(names[2], "~/engram", 2, 4, facts)}
        assert "wrong-rank shard: its manifest is of layer 14, rank 0" in (
            rows["ENGRAM.ROWS"].observed
        )
        facts = probe(runner, names[1], wanted("~/engram", 1, 4))
        (check,) = verify_sample(runner.run, names[1], "~/engram", 1, 4, facts)
        first = ROWS[14] // 4
        assert (check.verdict, check.observed) == (
            "failed",
            f"engram-l14-r1of4: row {first} is not the one that was packed",
        )

    code, report = pack(path, "--verify")
    assert code == 1
    assert {one["where"].split()[0] for one in report["problems"]} == {names[1], names[2]}
