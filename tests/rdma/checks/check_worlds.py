"""Every size of group and every number of lanes over real queue pairs: bits, posts, one cause."""

import signal
from collections.abc import Callable

import pytest
import torch

from tests.collectives.cluster import Cluster
from tests.collectives.oracle import raw, reduced, shard
from tests.rdma.network import over, switch_wiring
from tetraspark.collectives.settings import Settings

Start = Callable[..., Cluster]
SHAPES = ((8,), (3, 88), (4097 * 8,))
SIZES = (7, 0, 1, 300, 2, 64, 9, 31)


def settings(world: int, lanes: int) -> Settings:
    return Settings(
        max_reduce_bytes=1 << 17,
        max_gather_bytes=1 << 13,
        lanes=lanes,
        routes=switch_wiring(world, lanes).routes(),
        spins=0,
        yields=20,
    )


def start(cluster: Start, world: int, lanes: int) -> Cluster:
    wiring = switch_wiring(world, lanes)
    made = cluster(world, settings=settings(world, lanes), transport=over(wiring))
    assert [answer[0] for answer in made.opened] == ["ok"] * world, made.opened
    return made


@pytest.mark.parametrize(("world", "lanes"), [(2, 4), (3, 3), (5, 1), (7, 1), (8, 4)])
def test_bits_and_posts(cluster: Start, world: int, lanes: int) -> None:
    ranks = start(cluster, world, lanes)
    everyone = list(range(world))
    for seed, shape in enumerate(SHAPES):
        wanted = raw(reduced([shard(seed, rank, shape) for rank in everyone]))
        answers = ranks.call(everyone, "reduce", shape, torch.bfloat16, seed, "new")
        assert answers == [("ok", wanted)] * world
    sizes = list(SIZES[:world])
    for rank in everyone:
        ranks.tell(rank, "gather", (3, sizes[rank]), torch.bfloat16, 5, -1, sizes)
    wanted = raw(torch.cat([shard(5, rank, (3, sizes[rank])) for rank in everyone], -1))
    assert [ranks.answer(rank) for rank in everyone] == [("ok", wanted)] * world
    for rank, (_, state) in enumerate(ranks.call(everyone, "state")):
        used = {(one["peer"], one["lane"]): one for one in state["details"]["lanes"]}
        assert set(used) == {(p, lane) for p in everyone if p != rank for lane in range(lanes)}
        assert all(one["writes"] > 0 and one["broken"] is None for one in used.values())
    assert [answer[0] for answer in ranks.call(everyone, "close")] == ["ok"] * world


def test_six_ranks_name_the_killed_one(cluster: Start) -> None:
    ranks = start(cluster, 6, 2)
    everyone, living = list(range(6)), [0, 1, 2, 3, 4]
    wanted = raw(reduced([shard(1, rank, (1024,)) for rank in everyone]))
    answers = ranks.call(everyone, "reduce", (1024,), torch.bfloat16, 1, "new")
    assert answers == [("ok", wanted)] * 6
    ranks.signal(5, signal.SIGKILL)
    answers = ranks.call(living, "reduce", (1024,), torch.bfloat16, 1, "new")
    assert [answer[:2] for answer in answers] == [("error", "CollectiveError")] * 5
    root = answers[0][2]
    assert all(answer[2] == root for answer in answers)
    # Six ranks share two emulated cores: a rank may be more than GATHER_S apart in finding its two
    # lanes lost, and then names the first. Four ranks are held to "dead" in check_faults.py.
    assert root["peer"] == 5
    assert root["kind"] in ("dead", "lane")
