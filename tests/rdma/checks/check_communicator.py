"""The engine's communicator over real queue pairs, told by the variables of a fleet's own plan."""

import json
import multiprocessing
import os
import tempfile
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.collectives.oracle import raw, reduced, shard
from tests.engine.engine_group import EngineGroup
from tests.line.docker_env import env_of
from tests.rdma.topology import plan_of_ring
from tetraspark.engine.communicator import open_communicator
from tetraspark.line.fleet_plan import fleet_plan
from tetraspark.line.lanes import lanes_of
from tetraspark.site.load import load_source
from tetraspark.site.source import decode_source

SITES = Path(__file__).parents[3] / "sites"
WORLD, SHAPES = 4, ((1, 256), (6, 5120), (64, 512))
SECTION = """
[collectives]
transport = "verbs"
max_reduce_bytes = 32768
max_two_shot_bytes = 65536
max_gather_bytes = 65536
min_lanes = 1
"""


def site_text(devices: list[list[str]]) -> str:
    """Return the site of the VM's four nodes with these devices."""
    text = (SITES / "four-sparks-switch.toml").read_text()
    text = text.replace('devices = ["rocep1s0f1", "roceP2p1s0f1"]\n', "")
    text = text.replace("\n[env]\n", f"{SECTION}\n[env]\n")
    for rank, own in enumerate(devices):
        host = f'host = "10.0.0.{rank + 1}"\n'
        text = text.replace(host, f"{host}devices = {json.dumps(own)}\n")
        text = text.replace(f'"spark{rank + 1}"', f'"node{rank}"')
    return text


def variables(folder: Path) -> list[dict[str, str]]:
    """Return the environment of each rank's container, whichever network this VM has."""
    on_ring = Path("/sys/class/infiniband/n0r0a").exists()
    ends = ["r0a", "r1a", "r0b", "r1b"] if on_ring else ["r0", "r1"]
    text = site_text([[f"n{rank}{end}" for end in ends] for rank in range(WORLD)])
    if on_ring:
        (folder / "ring.json").write_text(plan_of_ring().text())
        text = text.replace('topology = "switch"', 'topology = "ring"')
        text = text.replace("channels_max = 8\n", "")
        text = text.replace("min_lanes = 1", 'min_lanes = 1\nring_plan = "ring.json"')
    loaded = load_source(decode_source(folder / "vm.toml", text.encode()))
    plan = fleet_plan(loaded, None, lanes_of(loaded))
    return [env_of(plan, rank) for rank in range(WORLD)]


def work(rank: int, folder: str, env: dict[str, str], answers: "Queue[Any]") -> None:
    os.environ.update(env, GLOO_SOCKET_IFNAME="lo")
    communicator = open_communicator(EngineGroup.meet(rank, WORLD, folder))
    assert communicator is not None
    sums = []
    for seed, shape in enumerate(SHAPES):
        tensor = shard(seed, rank, shape)
        assert communicator.reduces(tensor)
        sums.append(raw(communicator.all_reduce(tensor)))
    assert not communicator.reduces(torch.zeros(1 << 17))
    communicator.check(None)
    parts = raw(communicator.all_gather(shard(9, rank, (6, 64)), -1))
    answers.put((rank, sums, parts, communicator.state()))
    torch.distributed.barrier()
    communicator.group.close()


@pytest.mark.usefixtures("ready_to_fork")
def test_a_fleets_plan_opens_the_lanes_in_the_engine() -> None:
    fork = multiprocessing.get_context("fork")
    answers: Queue[Any] = fork.Queue()
    with tempfile.TemporaryDirectory() as folder:
        ranks = [
            fork.Process(target=work, args=(rank, folder, env, answers))
            for rank, env in enumerate(variables(Path(folder)))
        ]
        for one in ranks:
            one.start()
        found = sorted((answers.get(timeout=120) for _ in ranks), key=lambda one: one[0])
        for one in ranks:
            one.join(30)
    assert [one.exitcode for one in ranks] == [0] * WORLD
    wanted = [
        raw(reduced([shard(seed, rank, shape) for rank in range(WORLD)]))
        for seed, shape in enumerate(SHAPES)
    ]
    whole = raw(torch.cat([shard(9, rank, (6, 64)) for rank in range(WORLD)], -1))
    for rank, sums, parts, state in found:
        assert (sums, parts) == (wanted, whole)
        assert (state["transport"], state["root"]) == ("verbs", None)
        devices = {one["device"] for one in state["details"]["devices"]}
        assert {name[:4] for name in devices} == {f"n{rank}r0", f"n{rank}r1"}
        lanes = {(one["peer"], one["lane"]) for one in state["details"]["lanes"]}
        assert lanes == {(peer, lane) for peer in range(WORLD) if peer != rank for lane in (0, 1)}
        routed = {way: counts["operations"] for way, counts in state["routed"].items()}
        assert routed == {
            "all_reduce one-shot": 1,
            "all_reduce two-shot": 2,
            "all_reduce left to the engine": 1,
        }
