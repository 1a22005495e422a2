"""Real ranks over shared memory: the bits, and every fault that one host can make."""

import signal
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.collectives.cluster import Cluster
from tests.collectives.oracle import raw, reduced, shard
from tetraspark.collectives.settings import Settings
from tetraspark.collectives.shm import DIRECTORY
from tetraspark.collectives.shm_card import PREFIX

pytestmark = pytest.mark.timed

Start = Callable[..., Cluster]
DTYPES = (torch.bfloat16, torch.float16, torch.float32)
QUICK = Settings(max_reduce_bytes=1 << 17, max_gather_bytes=1 << 15)


def reduce_everywhere(ranks: Cluster, world: int, shape: tuple[int, ...], seed: int) -> None:
    dtype = DTYPES[seed % 3]
    where = ("new", "in", "out")[seed // 3 % 3]
    wanted = raw(reduced([shard(seed, rank, shape, dtype) for rank in range(world)]))
    answers = ranks.call(list(range(world)), "reduce", shape, dtype, seed, where)
    assert answers == [("ok", wanted)] * world


@pytest.mark.parametrize(
    ("world", "lanes", "delivery"), [(2, 1, "pull"), (3, 4, "pull"), (4, 2, "push"), (8, 3, "pull")]
)
def test_bits_of_every_size_dtype_and_place(
    cluster: Start, world: int, lanes: int, delivery: str
) -> None:
    ranks = cluster(world, settings=replace(QUICK, lanes=lanes, delivery=delivery))
    assert [state for state, *_ in ranks.opened] == ["ok"] * world
    shapes = [(8,), (16,), (24,), (5, 40), (1, 8), (3, 2, 88), (1 << 15,), (4097 * 8,), (2056,)]
    for seed, shape in enumerate(shapes):
        reduce_everywhere(ranks, world, shape, seed)
    for seed, dtype in enumerate((torch.int64, torch.bfloat16, torch.uint8, torch.float32)):
        shards = [shard(seed, rank, (3, 5), dtype) for rank in range(world)]
        for dim in (0, -1):
            answers = ranks.call(list(range(world)), "gather", (3, 5), dtype, seed, dim, None)
            assert answers == [("ok", raw(torch.cat(shards, dim)))] * world


def test_unequal_shards_on_the_last_dimension(cluster: Start) -> None:
    ranks = cluster(4, settings=QUICK)
    sizes = [7, 0, 1, 300]
    for rank in range(4):
        ranks.tell(rank, "gather", (3, sizes[rank]), torch.bfloat16, 5, -1, sizes)
    shards = [shard(5, rank, (3, sizes[rank])) for rank in range(4)]
    wanted = raw(torch.cat(shards, -1))
    assert [ranks.answer(rank) for rank in range(4)] == [("ok", wanted)] * 4


def test_nothing_is_in_dev_shm_while_the_group_runs(cluster: Start) -> None:
    ranks = cluster(2, settings=QUICK)
    assert list(DIRECTORY.glob(f"{PREFIX}*")) == []
    reduce_everywhere(ranks, 2, (64,), 0)


def lateness(ranks: Cluster, rank: int, peer: int) -> dict[str, Any]:
    """Return what a rank remembers of a peer; a slow opening may have left something."""
    _, state = ranks.call([rank], "state")[0]
    return next(dict(one["late"]) for one in state["peers"] if one["rank"] == peer)


def test_many_operations_across_the_wrap(cluster: Start) -> None:
    ranks = cluster(4, settings=Settings(start_sequence=(1 << 32) - 8, max_reduce_bytes=1 << 16))
    answers = ranks.call(list(range(4)), "many", 500, (1024,))
    tensors = [shard(1, rank, (1024,), torch.float32) for rank in range(4)]
    for _ in range(500):
        total = reduced(tensors)
        tensors = [total * 0.25 + rank for rank in range(4)]
    assert answers == [("ok", raw(reduced(tensors)))] * 4


def roots(answers: list[Any]) -> dict[str, Any]:
    """Return the one root that all answers name, and check that none took 2 s."""
    assert [(state, kind) for state, kind, *_ in answers] == [("error", "CollectiveError")] * len(
        answers
    )
    found = [root for _, _, root, _ in answers]
    assert all(root == found[0] for root in found), found
    return dict(found[0])


def test_a_killed_rank_is_named_by_all_within_two_seconds(cluster: Start) -> None:
    ranks = cluster(4, settings=QUICK)
    rest = [0, 1, 3]
    for rank in rest:
        ranks.tell(rank, "reduce", (64,), torch.bfloat16, 0, "new")
    time.sleep(0.2)
    ranks.signal(2, signal.SIGKILL)
    start = time.monotonic()
    root = roots([ranks.answer(rank) for rank in rest])
    assert time.monotonic() - start < 2
    assert (root["kind"], root["peer"], root["sequence"], root["nbytes"]) == ("dead", 2, 5, 128)
    again = roots(ranks.call(rest, "reduce", (64,), torch.bfloat16, 0, "new"))
    assert again == root


def test_a_rank_killed_between_operations_fails_the_check(cluster: Start) -> None:
    ranks = cluster(3, settings=QUICK)
    ranks.signal(1, signal.SIGKILL)
    ranks.processes[1].join(10)
    root = roots(ranks.call([0, 2], "check", 5.0, True))
    assert (root["kind"], root["peer"]) == ("dead", 1)


def test_a_stopped_rank_is_named_frozen_and_fails_when_it_wakes(cluster: Start) -> None:
    ranks = cluster(4, settings=Settings(freeze_limit_s=0.5, max_reduce_bytes=1 << 16))
    ranks.signal(3, signal.SIGSTOP)
    start = time.monotonic()
    root = roots(ranks.call([0, 1, 2], "reduce", (64,), torch.float32, 0, "new"))
    assert 0.5 < time.monotonic() - start < 2.5
    assert (root["kind"], root["peer"]) == ("frozen", 3)
    assert "is stopped" in root["detail"]
    ranks.signal(3, signal.SIGCONT)
    assert roots(ranks.call([3], "reduce", (64,), torch.float32, 0, "new")) == root


def test_an_interrupted_rank_takes_the_group_with_it(cluster: Start) -> None:
    ranks = cluster(3, settings=QUICK)
    for rank in (0, 1):
        ranks.tell(rank, "reduce", (64,), torch.bfloat16, 0, "new")
    time.sleep(0.3)
    ranks.signal(1, signal.SIGINT)
    assert ranks.answer(1)[1] == "KeyboardInterrupt"
    root = roots([ranks.answer(0)])
    assert (root["kind"], root["reporter"]) == ("interrupted", 1)
    again = ranks.call([1, 2], "reduce", (64,), torch.bfloat16, 0, "new")
    assert roots(again) == root


def test_a_rank_stopped_for_less_than_the_limit_is_waited_for(cluster: Start) -> None:
    ranks = cluster(3, settings=QUICK)
    before = lateness(ranks, 1, 0)
    ranks.signal(0, signal.SIGSTOP)
    wanted = raw(reduced([shard(4, rank, (64,)) for rank in range(3)]))
    for rank in range(3):
        ranks.tell(rank, "reduce", (64,), torch.bfloat16, 4, "new")
    time.sleep(0.6)
    ranks.signal(0, signal.SIGCONT)
    assert [ranks.answer(rank) for rank in range(3)] == [("ok", wanted)] * 3
    late = lateness(ranks, 1, 0)
    assert late["count"] == before["count"] + 1
    assert late["longest_s"] > 0.3


def test_a_late_rank_is_waited_for_without_burning_a_core(cluster: Start) -> None:
    ranks = cluster(3, settings=QUICK)
    for rank in (0, 1):
        ranks.tell(rank, "burned", (64,))
    time.sleep(1.5)
    ranks.tell(2, "burned", (64,))
    burned = [ranks.answer(rank)[1] for rank in range(3)]
    assert max(burned) < 0.15


def test_a_rank_later_than_the_limit_fails_the_group(cluster: Start) -> None:
    ranks = cluster(3, settings=Settings(late_limit_s=0.4, max_reduce_bytes=1 << 16))
    root = roots(ranks.call([0, 2], "reduce", (64,), torch.bfloat16, 0, "new"))
    assert (root["kind"], root["peer"]) == ("late", 1)
    assert "it has begun 4" in root["detail"]
    assert roots(ranks.call([1], "reduce", (64,), torch.bfloat16, 0, "new")) == root


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        (("reduce", (8, 8), torch.bfloat16, 0, "new"), ("[64]", "[8, 8]")),
        (("reduce", (128,), torch.bfloat16, 0, "new"), ("128 bytes", "256 bytes")),
        (("reduce", (32,), torch.float32, 0, "new"), ("bf16", "fp32")),
        (("gather", (64,), torch.bfloat16, 0, 0, None), ("all_reduce", "gather_first")),
    ],
)
def test_a_mismatch_is_an_error_on_every_rank(
    cluster: Start, odd: tuple[Any, ...], words: tuple[str, str]
) -> None:
    ranks = cluster(4, settings=QUICK)
    for rank in range(4):
        told = odd if rank == 2 else ("reduce", (64,), torch.bfloat16, 0, "new")
        ranks.tell(rank, *told)
    root = roots([ranks.answer(rank) for rank in range(4)])
    assert (root["kind"], root["sequence"]) == ("mismatch", 5)
    assert 2 in (root["peer"], root["reporter"])
    assert all(word in root["detail"] for word in words)


def test_one_rank_without_a_compiler_refuses_all(cluster: Start) -> None:
    ranks = cluster(3, settings=QUICK, unable=1)
    assert {kind for _, kind, *_ in ranks.opened} == {"RefusedError"}
    texts = {text for _, _, text, _ in ranks.opened}
    assert len(texts) == 1
    assert texts.pop().startswith("rank 1: no C compiler found (CC=no-such-compiler)")


def test_one_rank_with_other_settings_refuses_all(cluster: Start) -> None:
    ranks = cluster(3, settings=QUICK, odd=(2, Settings(max_reduce_bytes=1 << 16)))
    texts = {text for _, _, text, _ in ranks.opened}
    assert len(texts) == 1
    assert "rank 2: settings.max_reduce_bytes is 65536, rank 0 has 131072" in texts.pop()


def test_close_is_ordered_and_survives_a_dead_peer(cluster: Start) -> None:
    ranks = cluster(3, settings=QUICK)
    ranks.signal(0, signal.SIGKILL)
    ranks.processes[0].join(10)
    start = time.monotonic()
    answers = ranks.call([1, 2], "close")
    assert time.monotonic() - start < 1.5
    assert answers == [("ok", {0: "dead", 2: "closed"}), ("ok", {0: "dead", 1: "closed"})]


def test_a_rank_that_closed_is_named(cluster: Start) -> None:
    ranks = cluster(2, settings=QUICK)
    ranks.tell(1, "close")
    root = roots(ranks.call([0], "reduce", (64,), torch.bfloat16, 0, "new"))
    assert (root["kind"], root["peer"]) == ("closed", 1)
    assert ranks.answer(1)[0] == "ok"


def test_a_result_that_never_comes_fails_the_check_everywhere(cluster: Start) -> None:
    ranks = cluster(2, settings=QUICK)
    start = time.monotonic()
    root = roots(ranks.call([0], "check", 0.3, False))
    assert time.monotonic() - start < 2
    assert (root["kind"], root["reporter"], root["peer"]) == ("late", 0, 0)
    assert roots(ranks.call([1], "check", 5.0, True)) == root


def test_an_operation_that_meets_an_abort_does_not_return_what_was_in_memory(
    cluster: Start,
) -> None:
    ranks = cluster(3, settings=QUICK)
    root = roots(ranks.call([0], "check", 0.1, False))
    # Rank 2 is idle and leaves no record, so rank 1 has to wait for it after its refused start.
    start = time.monotonic()
    assert roots(ranks.call([1], "reduce", (64,), torch.bfloat16, 0, "new")) == root
    assert time.monotonic() - start < 2
