"""Whether a row's scores or its selection depend on the rows of its tile."""

from collections.abc import Iterator
from typing import Any

import torch

from tests.gpu.indexer_batch import BLOCK, TOPK, TOPK_BLOCKS, Engine, batch
from tests.gpu.indexer_kernels import GROUP_ROWS

HEIGHTS = (4, 8, 16, 32, 64, 100, 128, 200, 400, 800, 1024, 2048, 4096)
"""Rows of a tile, over the range in which torch.topk has several algorithms."""


def dependence(device: str, columns: int, count: int) -> Iterator[dict[str, Any]]:
    """Yield whatever differs when the same rows are scored in other tiles, and selected from."""
    shapes = [(columns, count)]
    if device == "cuda":
        # Beyond 100,000 blocks of at most ten rows torch.topk is a sort: another algorithm.
        shapes.append((1 << 20, 16))
    for columns, count in shapes:
        for ties in (False, True):
            for found in differing_tiles(device, columns, count, ties):
                yield {"columns": columns, "rows": count, "ties": ties, **found}


def differing_tiles(device: str, columns: int, count: int, ties: bool) -> Iterator[dict[str, Any]]:
    """Yield each height whose tiles score or select otherwise than one tile of all rows."""
    data, kv = batch(((columns, count),), device, ties)
    engine = Engine(device, torch.float32)
    whole = score(engine, data, kv, slice(0, count), columns)
    for height in (height for height in HEIGHTS if height <= count):
        for start in sorted({0, (count - height) // GROUP_ROWS * GROUP_ROWS}):
            rows = slice(start, start + height)
            for more in (0, 64, 4096):
                again = score(engine, data, kv, rows, columns + more)[:, :columns]
                differs = unequal(again, whole[rows])
                if differs:
                    yield {"what": "scores", "height": height, "wider": more, "differ": differs}
            for what, differs in selections(engine, data, whole, rows):
                if differs:
                    yield {"what": what, "height": height, "differ": differs}


def score(engine: Engine, data: Any, kv: Any, rows: slice, width: int) -> torch.Tensor:
    starts = data.request_starts[rows]
    logits = engine.logits.fp8_fp4_mqa_logits(
        (data.q_fp4[rows], None), kv, data.weights[rows], starts, starts, False, width,
        torch.float32,
    )  # fmt: skip
    seen = torch.arange(width, device=engine.device) < data.compress_lens[rows, None]
    return logits.masked_fill(~seen, -torch.inf)


def selections(
    engine: Engine, data: Any, whole: torch.Tensor, rows: slice
) -> Iterator[tuple[str, int]]:
    """Yield how many rows select otherwise when they are selected from without the others."""
    blocks_of, among = (
        engine.names[name] for name in ("select_candidate_block_ids", "topk_among_blocks")
    )
    lens = data.compress_lens
    all_blocks = blocks_of(whole, lens[:, None], TOPK_BLOCKS, BLOCK)
    yield (
        "block ids",
        unequal(blocks_of(whole[rows], lens[rows, None], TOPK_BLOCKS, BLOCK), all_blocks[rows]),
    )
    all_chosen = among(whole, lens, all_blocks, TOPK, BLOCK)
    yield (
        "top-k among blocks",
        unequal(among(whole[rows], lens[rows], all_blocks[rows], TOPK, BLOCK), all_chosen[rows]),
    )


def unequal(one: torch.Tensor, other: torch.Tensor) -> int:
    return int((one != other).any(1).sum())
