"""Ranks as processes, through the hooked attention backend, over our shared-memory gather."""

import functools
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from tests.collectives import ranks
from tests.collectives.cluster import Cluster
from tests.engine.batch import Shape
from tests.engine.lab import in_engine
from tests.engine.split_ranks import Step, run
from tetraspark.collectives.settings import Settings
from tetraspark.engine.row_partition import Partition

LONG = Shape(((32_768, 40), (900, 300), (3, 0), (1200, 750)), ratio=2, topk=16, heads=4)
"""1,090 rows at a context of 32,768 tokens: both thresholds are met, the first exactly."""


@contextmanager
def cluster(world: int) -> Iterator[Cluster]:
    commands = mock.patch.dict(ranks.COMMANDS, {"step": run})
    settings = Settings(max_gather_bytes=1 << 18, max_reduce_bytes=1 << 12)
    with commands:
        started = Cluster(world, settings, context=multiprocessing.get_context("fork"))
    try:
        assert [state for state, *_ in started.opened] == ["ok"] * world
        yield started
    finally:
        started.stop()
    assert started.leftovers() == []


def answers(started: Cluster, world: int, step: Step) -> list[dict[str, Any]]:
    found = started.call(list(range(world)), "step", step)
    assert [state for state, *_ in found] == ["ok"] * world, found
    return [answer for _, answer in found]


@functools.cache
def unsplit() -> dict[str, Any]:
    return run(None, Step(LONG))


@pytest.mark.parametrize("world", [2, 3, 4])
@in_engine
def test_ranks_select_what_one_does_and_say_so(world: int) -> None:
    alone = unsplit()
    assert alone["receipts"] == []
    with cluster(world) as started:
        for rank, answer in enumerate(answers(started, world, Step(LONG))):
            assert answer["selected"] == alone["selected"]
            assert answer["dtypes"] == ["torch.int32"] * 3
            share = Partition(LONG.rows, world, rank)
            own = share.end - share.begin
            assert [rows for rows, _ in answer["tiles"]] == [own] * 3 * bool(own)
            assert {width for _, width in answer["tiles"]} <= {16_384}
            assert answer["receipts"] == [
                {
                    "rank": rank, "world": world, "rows": 1090, "begin": share.begin,
                    "end": share.end, "context": 32_768,
                }
            ]  # fmt: skip


AT_THRESHOLD = Step(replace(LONG, requests=((32_768, 40), (1200, 984))), scored=False)
NOT_SPLIT = {
    "1023 rows": replace(LONG, requests=((32_768, 40), (1200, 983))),
    "32767 tokens": replace(LONG, requests=((32_767, 40), (1200, 984))),
    "capture": "capturing",
    "draft": "draft",
    "context parallel": "context_parallel",
}
"""Each differs from a step at both thresholds in one thing: its shape, or a field."""


def steps_not_split() -> dict[str, Step]:
    steps = {
        name: replace(AT_THRESHOLD, **({what: True} if isinstance(what, str) else {"shape": what}))
        for name, what in NOT_SPLIT.items()
    }
    return {**steps, "not planned": replace(AT_THRESHOLD, planned=False)}


@in_engine
def test_every_rank_decides_alike_and_at_the_thresholds() -> None:
    with cluster(2) as started:
        found = answers(started, 2, AT_THRESHOLD)
        assert [one["dtypes"] for one in found] == [["torch.int32"]] * 2
        assert [one["tiles"] for one in found] == [[(512, 16_384)]] * 2
        for name, step in steps_not_split().items():
            found = answers(started, 2, step)
            assert [one["dtypes"] for one in found] == [[], []], name
            assert [one["receipts"] for one in found] == [[], []], name
            assert [one["tiles"][0][0] for one in found] == [step.shape.rows] * 2, name
