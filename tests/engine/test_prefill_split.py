"""A split step selects what the unsplit one does, bit for bit, through the engine's own classes.

The kernels on the GPU are stood in for (`kernels.py`); tiles, blocks, top-k among blocks and the
writes into the engine's buffers are the engine's.
"""

from typing import Any
from unittest import mock

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.batch import LAYERS, Batch, Shape, select
from tests.engine.kernels import Record, no_scores, stand_ins
from tests.engine.lab import in_engine
from tests.engine.lockstep import in_lockstep
from tests.engine.split_faults import RAGGED, differing, faults
from tetraspark.engine import prefill_split
from tetraspark.engine.row_partition import Partition


@pytest.mark.parametrize("world", [1, 2, 3, 4])
@pytest.mark.parametrize("ratio", [1, 2])
@in_engine
def test_a_split_step_is_bitwise_the_unsplit_one(world: int, ratio: int) -> None:
    found, gathered = faults(RAGGED.with_ratio(ratio), world)
    assert found == []
    # The top-k of each layer, and no block ids.
    rows = world * Partition(595, world, 0).extent
    assert [tuple(whole.shape) for whole in gathered] == [(rows, RAGGED.topk)] * 3
    assert RAGGED.topk != RAGGED.topk_blocks


@pytest.mark.parametrize("world", [1, 2, 3, 4])
@pytest.mark.parametrize("tail", [(3, 0, 0, 1, 2, 64, 0), (0, 0, 0, 0, 0, 0, 0)])
@in_engine
def test_a_tail_reads_the_blocks_of_its_rows_alone(world: int, tail: tuple[int, ...]) -> None:
    found, gathered = faults(RAGGED, world, list(tail))
    assert found == []
    blocks = [len(whole) for whole in gathered if whole.shape[1] == RAGGED.topk_blocks]
    assert len(blocks) == (1 if sum(tail) else 0)
    assert all(rows <= world * sum(tail) for rows in blocks)


def tile_budget(bytes_: int) -> Any:
    name = "sglang.srt.layers.attention.dsv4.v41_indexer.scoring._DEEP_GEMM_SCORE_BUDGET_BYTES"
    return mock.patch(name, bytes_)


ALIGNMENT = "tetraspark.engine.row_partition.ROW_ALIGNMENT"


@pytest.mark.parametrize("world", [1, 2, 3, 4])
@in_engine
def test_down_to_one_row_a_tile(world: int) -> None:
    """128 heads make DeepGEMM's row group one row; the shares are of a few rows likewise."""
    shape = Shape(((70, 13), (11, 11), (90, 10)), heads=128, topk=6)
    with stand_ins() as whole:
        batch = Batch.make(shape)
        wanted = select(batch)
    with stand_ins() as record, tile_budget(1), mock.patch(ALIGNMENT, 1):
        assert differing(select(batch), wanted) == []
        record.tiles.clear()
        results, _ = in_lockstep(world, lambda: select(batch))
    assert {rows for rows, _ in whole.tiles} == {34}
    assert [rows for rows, _ in record.tiles] == [1] * 34 * 3
    for result in results:
        assert differing(result, wanted) == []


@in_engine
def test_a_rank_without_rows_scores_nothing_and_joins_every_gather() -> None:
    shape = Shape(((400, 130),))
    with stand_ins() as record:
        batch = Batch.make(shape)
        wanted = select(batch)
        record.tiles.clear()
        results, gathered = in_lockstep(4, lambda: select(batch))
    assert [Partition(130, 4, rank).own for rank in range(4)] == [
        slice(0, 128), slice(128, 130), slice(130, 130), slice(130, 130)
    ]  # fmt: skip
    assert sorted(rows for rows, _ in record.tiles) == [2, 2, 2, 128, 128, 128]
    assert len(gathered) == 3
    assert all(differing(result, wanted) == [] for result in results)


@in_engine
def test_below_the_least_rows_every_rank_scores_all_of_them() -> None:
    with stand_ins() as record:
        batch = Batch.make(Shape(((200, 150),)))
        wanted = select(batch)
        record.tiles.clear()
        results, gathered = in_lockstep(2, lambda: select(batch), min_rows=151)
    assert gathered == []
    assert [rows for rows, _ in record.tiles] == [150] * 6
    assert all(differing(result, wanted) == [] for result in results)


def published_blocks(batch: Batch) -> torch.Tensor:
    from tests.engine.batch import backends

    blocks: torch.Tensor = backends(batch)[1].publish_prefill(batch.inputs(LAYERS[1])).blocks
    return blocks


@in_engine
def test_an_unsplit_consumer_of_split_blocks_gets_all_of_them() -> None:
    from tetraspark.engine.local_blocks import all_rows

    with stand_ins():
        batch = Batch.make(RAGGED)
        wanted = published_blocks(batch)
        results, gathered = in_lockstep(3, lambda: all_rows(published_blocks(batch)))
    assert all(torch.equal(result, wanted) for result in results)
    assert gathered[-1].shape == (3 * 256, RAGGED.topk_blocks)
    assert gathered[-1].dtype == torch.int32


@in_engine
def test_the_logits_of_a_tile_stay_within_two_gib() -> None:
    """262,144 columns and 4,096 rows, unsplit and split: the engine's own tiler, no memory."""
    record = unscored(Shape(((262_144, 4096),)))
    assert record.tiles == [(2048, 262_144)] * 2 + [(1024, 262_144)]
    assert record.most_logits_bytes == 2 << 30


def unscored(shape: Shape) -> Record:
    """Record the tiles of one full top-k, whole and then as rank 0 of 4, scoring nothing."""
    from sglang.srt.layers.attention.dsv4.v41_indexer import scoring

    empty, rows = torch.empty(0), shape.rows
    with no_scores() as record:
        data = scoring.DeepGEMMPrefillData(
            k_slots=empty,
            request_starts=torch.zeros(rows, dtype=torch.int32),
            lens_per_request=[context for context, _ in shape.requests],
            rows_per_request=shape.rows_per_request,
            compress_lens=torch.zeros(rows, dtype=torch.int32),
            q_fp4=torch.empty(rows, shape.heads, 64, dtype=torch.int8),
            q_sf=torch.empty(rows, shape.heads, dtype=torch.int32),
            weights=torch.empty(rows, shape.heads),
        )
        out = torch.empty(rows, 512, dtype=torch.int32)
        scoring.dense_prefill_topk(data, (empty, empty), out=out)
        own = prefill_split.own_rows(data, Partition(rows, 4, 0))
        scoring.dense_prefill_topk(own, (empty, empty), out=out[:1024])
    return record


@st.composite
def shapes(draw: Any) -> Shape:
    pairs = []
    for _ in range(draw(st.integers(1, 4))):
        context = draw(st.integers(0, 100))
        pairs.append((context, draw(st.integers(0, context))))
    return Shape(
        tuple(pairs),
        ratio=draw(st.sampled_from((1, 2))),
        heads=draw(st.sampled_from((32, 128))),
        topk=draw(st.integers(1, 12)),
        topk_blocks=draw(st.integers(1, 6)),
        seed=draw(st.integers(0, 9)),
    )


@in_engine
@settings(max_examples=30, deadline=None, derandomize=True)
@given(shape=shapes(), world=st.integers(1, 4), tile=st.sampled_from((1, 1 << 14, 2 << 30)))
def test_any_ragged_batch(shape: Shape, world: int, tile: int) -> None:
    with mock.patch(ALIGNMENT, 4), tile_budget(tile):
        assert faults(shape, world)[0] == []
