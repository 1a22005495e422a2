"""Two-shot and reduce-scatter between real ranks over shared memory."""

import signal
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.collectives.cluster import Cluster
from tests.collectives.oracle import raw, reduced, shard
from tetraspark.collectives.algorithm import Algorithm
from tetraspark.collectives.chunks import chunk_rows
from tetraspark.collectives.settings import Settings

pytestmark = pytest.mark.timed

Start = Callable[..., Cluster]
DTYPES = (torch.bfloat16, torch.float16, torch.float32)
QUICK = Settings(
    max_reduce_bytes=1 << 14,
    max_gather_bytes=1 << 12,
    max_two_shot_bytes=1 << 17,
    freeze_limit_s=0.5,
)


@pytest.mark.parametrize(
    ("world", "lanes", "delivery"), [(2, 1, "push"), (4, 2, "pull"), (5, 3, "push")]
)
def test_bits_of_every_size_dtype_and_place(
    cluster: Start, world: int, lanes: int, delivery: str
) -> None:
    ranks = cluster(world, settings=replace(QUICK, lanes=lanes, delivery=delivery))
    assert [state for state, *_ in ranks.opened] == ["ok"] * world
    everyone = list(range(world))
    for seed, shape in enumerate([(8,), (24,), (5, 40), (3, 2, 88), (1 << 15,), (4097 * 4,)]):
        dtype, where = DTYPES[seed % 3], ("new", "in", "out")[seed // 2 % 3]
        whole = reduced([shard(seed, rank, shape, dtype) for rank in everyone])
        told = (shape, dtype, seed, where, Algorithm.TWO_SHOT)
        assert ranks.call(everyone, "reduce", *told) == [("ok", raw(whole))] * world
    for seed, (shape, dim) in enumerate([((1 << 15,), 0), ((24,), 0), ((5, 40), 0), ((6, 80), -1)]):
        dtype = DTYPES[seed % 3]
        whole = reduced([shard(seed, rank, shape, dtype) for rank in everyone])
        rows = chunk_rows(shape[dim], whole.nbytes // shape[dim], world)
        wanted = [("ok", raw(part)) for part in torch.split(whole, list(rows), dim)]
        assert ranks.call(everyone, "scatter", shape, dtype, seed, dim) == wanted


@pytest.mark.parametrize("delivery", ["pull", "push"])
def test_a_dependent_mix_across_the_wrap(cluster: Start, delivery: str) -> None:
    told = replace(QUICK, start_sequence=(1 << 32) - 60, delivery=delivery)
    ranks = cluster(4, settings=told)
    answers = ranks.call(list(range(4)), "mixed", 200, (1036,))
    tensors = [shard(1, rank, (1036,), torch.float32) for rank in range(4)]
    for _ in range(200):
        total = reduced(tensors)
        tensors = [total * 0.25 + rank for rank in range(4)]
    assert answers == [("ok", raw(reduced(tensors)))] * 4


@pytest.mark.parametrize(("number", "kind"), [(signal.SIGKILL, "dead"), (signal.SIGSTOP, "frozen")])
def test_a_rank_that_goes_amid_a_stream_is_named_by_all(
    cluster: Start, number: int, kind: str
) -> None:
    ranks = cluster(4, settings=QUICK)
    for rank in range(4):
        ranks.tell(rank, "mixed", 1_000_000, (1024,))
    time.sleep(0.4)
    ranks.signal(1, number)
    answers: list[Any] = [ranks.answer(rank) for rank in (0, 2, 3)]
    roots = [answer[2] for answer in answers]
    assert all(root == roots[0] for root in roots), roots
    assert (roots[0]["kind"], roots[0]["peer"]) == (kind, 1)
