"""The real Group over real queue pairs: the bits, whatever the world, lanes, dtypes and sizes."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from tests.collectives.cluster import Cluster
from tests.collectives.oracle import raw, reduced, shard
from tests.rdma.network import over, switch_wiring
from tetraspark.collectives.algorithm import Algorithm
from tetraspark.collectives.chunks import chunk_rows
from tetraspark.collectives.settings import Settings

Start = Callable[..., Cluster]
DTYPES = (torch.bfloat16, torch.float16, torch.float32)
SHAPES = ((8,), (24,), (5, 40), (3, 2, 88), (1 << 14,), (4097 * 8,), (1 << 16,))


def settings(world: int, rails: int, start: int = 0) -> Settings:
    return Settings(
        max_reduce_bytes=1 << 18,
        max_gather_bytes=1 << 16,
        lanes=rails,
        routes=switch_wiring(world, rails).routes(),
        start_sequence=start,
        spins=0,
        yields=20,
    )


@pytest.mark.parametrize(("world", "rails"), [(2, 1), (4, 2)])
def test_bits(cluster: Start, world: int, rails: int) -> None:
    told = replace(settings(world, rails), max_two_shot_bytes=1 << 18)
    ranks = cluster(world, settings=told, transport=over(switch_wiring(world, rails)))
    everyone = list(range(world))
    for seed, shape in enumerate(SHAPES):
        dtype, where = DTYPES[seed % 3], ("new", "in", "out")[seed // 3 % 3]
        whole = reduced([shard(seed, rank, shape, dtype) for rank in everyone])
        for way in Algorithm:
            answers = ranks.call(everyone, "reduce", shape, dtype, seed, where, way)
            assert answers == [("ok", raw(whole))] * world
        rows = chunk_rows(shape[0], whole.nbytes // shape[0], world)
        parts = [("ok", raw(part)) for part in torch.split(whole, list(rows))]
        assert ranks.call(everyone, "scatter", shape, dtype, seed, 0) == parts
    for seed, dtype in enumerate((torch.int64, torch.bfloat16, torch.uint8)):
        shards = [shard(seed, rank, (3, 5), dtype) for rank in everyone]
        for dim in (0, -1):
            answers = ranks.call(everyone, "gather", (3, 5), dtype, seed, dim, None)
            assert answers == [("ok", raw(torch.cat(shards, dim)))] * world
    mixed = ranks.call(everyone, "mixed", 50, (1036,))
    assert {state for state, _ in mixed} == {"ok"} and len({result for _, result in mixed}) == 1
    sizes = [7, 0, 1, 300][:world]
    for rank in everyone:
        ranks.tell(rank, "gather", (3, sizes[rank]), torch.bfloat16, 5, -1, sizes)
    wanted = raw(torch.cat([shard(5, rank, (3, sizes[rank])) for rank in everyone], -1))
    assert [ranks.answer(rank) for rank in everyone] == [("ok", wanted)] * world
    assert ranks.call(everyone, "close") == [
        ("ok", {peer: "closed" for peer in everyone if peer != rank}) for rank in everyone
    ]


def test_hundreds_of_dependent_operations_across_the_wrap(cluster: Start) -> None:
    told = settings(4, 2, start=(1 << 32) - 100)
    ranks = cluster(4, settings=told, transport=over(switch_wiring(4, 2)))
    answers = ranks.call([0, 1, 2, 3], "many", 300, (1024,))
    tensors = [shard(1, rank, (1024,), torch.float32) for rank in range(4)]
    for _ in range(300):
        total = reduced(tensors)
        tensors = [total * 0.25 + rank for rank in range(4)]
    assert answers == [("ok", raw(reduced(tensors)))] * 4
    for rank, (_, state) in enumerate(ranks.call([0, 1, 2, 3], "state")):
        assert state["root"] is None
        assert {one["device"] for one in state["details"]["devices"]} == {
            f"n{rank}r0",
            f"n{rank}r1",
        }
        for lane in state["details"]["lanes"]:
            # 300 operations, the last one and four probes: two writes each, one in 8 signalled.
            assert lane["writes"] == 2 * 305
            assert lane["signalled"] == 305 // 8
            assert (lane["stalls"], lane["broken"]) == (0, None)
        for device in state["details"]["devices"]:
            assert device["counters"]["sent_pkts"] > 3 * 2 * 305
            assert device["gid_index"] == 1
    print("state of rank 0:", state)


def test_a_mismatch_is_an_error_on_every_rank(cluster: Start) -> None:
    ranks = cluster(4, settings=settings(4, 2), transport=over(switch_wiring(4, 2)))
    for rank in range(4):
        ranks.tell(rank, "reduce", (64,) if rank != 2 else (8, 8), torch.bfloat16, 1, "new")
    answers = [ranks.answer(rank) for rank in range(4)]
    assert [answer[:2] for answer in answers] == [("error", "CollectiveError")] * 4
    roots = [answer[2] for answer in answers]
    assert all(root == roots[0] for root in roots)
    assert roots[0]["kind"] == "mismatch" and 2 in (roots[0]["peer"], roots[0]["reporter"])
