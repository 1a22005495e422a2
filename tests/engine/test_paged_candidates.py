"""Decode on SM12x: the engine's block code over paged scores, in tiles of bounded memory."""

from typing import Any
from unittest import mock

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.engine.decode import Decode, assert_best, naive, scored, step
from tests.engine.kernels import Record, stand_ins
from tests.engine.lab import in_engine
from tetraspark.engine import paged_candidates
from tetraspark.engine.paged_candidates import (
    TILE_BYTES,
    PagedCandidates,
    row_bytes,
    rows_per_tile,
)

DECODE = Decode((1, 7, 8, 64, 65, 300, 511, 512))
VERIFY = Decode((200, 201, 202, 9, 10, 11, 510, 511, 512), group=3)


def selected(shape: Decode, blocks: int = 4) -> tuple[Record, Any, list[torch.Tensor]]:
    """Publish at the source and consume; return the record, the inputs, [publish, consume]."""
    with stand_ins() as record:
        pool, inputs = step(shape)
        backend = PagedCandidates(pool, blocks, 8)
        published = backend.publish_decode(inputs)
        first = inputs.out_page_indices.clone()
        assert_best(first, naive(pool, inputs), shape.topk)
        backend.consume_decode(inputs, published)
        second = inputs.out_page_indices.clone()
        assert_best(second, naive(pool, inputs, published.blocks), shape.topk)
    return record, published, [first, second]


@pytest.mark.parametrize("shape", [DECODE, VERIFY], ids=["decode", "verify"])
@in_engine
def test_rows_get_the_best_slots_and_consumers_the_best_of_the_blocks(shape: Decode) -> None:
    record, published, _ = selected(shape)
    assert published.blocks.shape == (shape.rows, 4)
    assert record.tiles == [(shape.rows, 512)] * 2
    assert record.schedules == [(shape.rows, shape.group)], "the engine's schedule is used"


@in_engine
def test_blocks_are_those_of_the_engines_torch_selection() -> None:
    from sglang.kernels.ops.attention.dsv4.candidate_blocks import select_candidate_block_ids

    _, published, _ = selected(DECODE)
    with stand_ins():
        pool, inputs = step(DECODE)
    for row, (score, _) in enumerate(scored(pool, inputs)):
        length = DECODE.lengths[row]
        wanted = select_candidate_block_ids(score[None], torch.tensor([[length]]), 4, 8)[0]
        maxima = torch.nn.functional.pad(score, (0, -length % 8), value=-torch.inf)
        maxima = maxima.view(-1, 8).amax(1)
        maxima[-1] = torch.inf
        kept = published.blocks[row][published.blocks[row] >= 0].long()
        # Blocks of one maximum may stand for one another.
        assert sorted(maxima[kept].tolist()) == sorted(maxima[wanted.long()].tolist())


@pytest.mark.parametrize("shape", [DECODE, VERIFY], ids=["decode", "verify"])
@in_engine
def test_tiles_change_nothing_and_have_schedules_of_their_own(shape: Decode) -> None:
    _, whole, wanted = selected(shape)
    with mock.patch.object(paged_candidates, "TILE_BYTES", 1):
        record, published, found = selected(shape)
    assert {rows for rows, _ in record.tiles} == {shape.group}
    assert record.schedules[1:] == [(shape.group, shape.group)] * len(record.tiles)
    assert torch.equal(published.blocks, whole.blocks)
    assert all(torch.equal(one, other) for one, other in zip(found, wanted, strict=True))


@in_engine
def test_no_row_is_no_work() -> None:
    with stand_ins() as record:
        pool, inputs = step(DECODE)
        empty = type(inputs)(**{
            name: getattr(inputs, name) for name in inputs.__struct_fields__ if name != "req_rows"
        }, req_rows=torch.empty(0, dtype=torch.int64))  # fmt: skip
        backend = PagedCandidates(pool, 4, 8)
        assert backend.publish_decode(empty) is None
        backend.consume_decode(empty, None)
    assert record.tiles == []
    assert (empty.out_page_indices == -1).all()


@pytest.mark.parametrize(
    ("rows", "width", "group", "tile"),
    [
        (8, 262_144, 1, 8),
        (96, 262_144, 6, 96),
        (96, 1_048_576, 6, 54),
        (8000, 512, 1, 1795),
        (9000, 64, 5, 1805),
        (12, 1 << 28, 6, 6),
    ],
)
def test_the_rows_of_a_tile(rows: int, width: int, group: int, tile: int) -> None:
    bytes_a_row = row_bytes(width, 2048, 8)
    assert rows_per_tile(rows, group, bytes_a_row) == tile
    assert tile * bytes_a_row <= TILE_BYTES or tile == group


class Largest(TorchDispatchMode):
    """Notes the largest tensor that any operation makes, views apart."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's own is untyped
        self.nbytes = 0

    def __torch_dispatch__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        held = {one.untyped_storage().data_ptr() for one in tensors_of(args)}
        for one in tensors_of(result if isinstance(result, tuple) else (result,)):
            if one.untyped_storage().data_ptr() not in held:
                self.nbytes = max(self.nbytes, one.untyped_storage().nbytes())
        return result


def tensors_of(values: Any) -> list[torch.Tensor]:
    return [one for one in values if isinstance(one, torch.Tensor)]


@in_engine
def test_no_tensor_of_a_consumer_is_larger_than_the_bound() -> None:
    """64 rows of 4,096 columns in tiles of 1 MiB; the scores of all would be as large as that."""
    shape = Decode(tuple(range(4033, 4097)), capacity=4096)
    with stand_ins() as record, mock.patch.object(paged_candidates, "TILE_BYTES", 1 << 20):
        pool, inputs = step(shape)
        backend = PagedCandidates(pool, 64, 8)
        published = backend.publish_decode(inputs)
        record.tiles.clear()
        kernel = mock.patch("deep_gemm.fp8_fp4_paged_mqa_logits", lambda *_, **__: zeros(record))
        with kernel, Largest() as seen:
            backend.consume_decode(inputs, published)
    assert record.tiles == [(step_rows, 4096) for step_rows in (49, 15)]
    assert 0 < seen.nbytes <= 1 << 20


def zeros(record: Record) -> torch.Tensor:
    rows = 15 if record.tiles else 49
    record.tiles.append((rows, 4096))
    return torch.zeros(rows, 4096)


def test_other_block_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="blocks of 16"):
        PagedCandidates(None, 2048, 16)
