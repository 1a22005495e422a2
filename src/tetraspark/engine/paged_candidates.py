"""Candidate blocks at decode on SM12x: dense paged scores, in tiles of bounded memory.

The engine's own choice there builds a pool slot (int64) and a score for every position that a
graph could ever hold, of every row. Here the scores come from DeepGEMM's paged kernel, which
reads the pool through the page table, tile after tile of rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

TILE_BYTES = 256 << 20
"""Memory of one tile: its scores and what selects from them."""

SCORE_ALIGNMENT = 256
"""Columns; DeepGEMM pads a row of scores to 1024 bytes of fp32."""

KERNEL_ROWS = 4096
"""Rows that DeepGEMM's scheduler takes on SM12x (`_SM120_INDEXER_M_CHUNK` of the engine)."""


def row_bytes(width: int, topk_blocks: int, block_size: int) -> int:
    """Return the most that one row of `width` scores takes, in bytes.

    fp32 scores; then either a fp32 key for each block (a source), or, for each candidate, its
    score, two masks and three int64 of its block (a consumer).
    """
    scores = -(-width // SCORE_ALIGNMENT) * SCORE_ALIGNMENT * 4
    keys = -(-width // block_size) * 4
    candidates = topk_blocks * (block_size * (4 + 2) + 3 * 8)
    return scores + max(keys, candidates)


def rows_per_tile(rows: int, group: int, bytes_a_row: int) -> int:
    """Return how many rows a tile takes: a multiple of `group`, the rows of one request."""
    most = min(TILE_BYTES // bytes_a_row, KERNEL_ROWS)
    return min(rows, max(group, most // group * group))


@dataclass(frozen=True)
class Tile:
    """Rows of one call of the kernels, with their schedule and top-k plan."""

    rows: slice
    schedule: Any
    plan: torch.Tensor | None


class PagedCandidates:
    """The engine's `DecodeCandidates` for SM12x.

    A tile holds at most TILE_BYTES, and at least the rows of one request. It takes as many rows
    whatever the batch, so graphs of any size are captured with the same bound.
    """

    def __init__(self, token_to_kv_pool: Any, topk_blocks: int, block_size: int) -> None:
        if block_size != 8:
            raise ValueError(f"candidate blocks of {block_size}: the engine's kernels take 8")
        self.token_to_kv_pool = token_to_kv_pool
        self.topk_blocks = topk_blocks
        self.block_size = block_size

    def publish_decode(self, inputs: Any) -> Any:
        """Write each row's top-k slots; return the engine's `BlockIds` of its best blocks."""
        from sglang.kernels.ops.attention.dsv4.candidate_blocks import amax_topk_blocks
        from sglang.srt.layers.attention.dsv4.indexer import topk_transform_paged_from_metadata
        from sglang.srt.layers.attention.dsv4.v41_indexer.dense_blocks import BlockIds

        inputs.reset_outputs()
        metadata, chosen = inputs.paged_metadata, []
        for tile, scores, lengths in self._scored(inputs):
            topk_transform_paged_from_metadata(
                scores,
                metadata,
                inputs.out_page_indices,
                rows=tile.rows,
                topk_metadata=tile.plan,
            )
            count = (lengths + self.block_size - 1) // self.block_size
            chosen.append(amax_topk_blocks(scores, lengths, count, self.topk_blocks))
            # The next tile is scored only once these are gone.
            del scores
        return BlockIds(blocks=torch.cat(chosen)) if chosen else None

    def consume_decode(self, inputs: Any, published: Any) -> None:
        """Write each row's top-k slots among the blocks its source published."""
        from sglang.kernels.ops.attention.dsv4.candidate_blocks import topk_among_blocks

        inputs.reset_outputs()
        metadata, out = inputs.paged_metadata, inputs.out_page_indices
        for tile, scores, lengths in self._scored(inputs):
            positions = topk_among_blocks(
                scores,
                lengths,
                published.blocks[tile.rows],
                out.shape[1],
                block_size=self.block_size,
            )
            table = metadata.page_table[tile.rows]
            out[tile.rows] = slots_of(positions, table, metadata.compressed_page_size)
            del scores

    def _scored(self, inputs: Any) -> Iterator[tuple[Tile, torch.Tensor, torch.Tensor]]:
        """Yield each tile, its scores [rows, width] (garbage past a row's length) and lengths."""
        from sglang.kernels.ops.attention.dsv4.index_logits import deep_gemm_fp4_paged_mqa_logits
        from sglang.srt.layers.attention.dsv4.v41_indexer.scoring import get_deep_gemm_decode_data

        if inputs.req_rows.shape[0] == 0:
            return
        data = get_deep_gemm_decode_data(inputs, self.token_to_kv_pool)
        metadata = inputs.paged_metadata
        lengths = metadata.compressed_seq_lens.reshape(-1).to(torch.int32)
        for tile in self._tiles(metadata, lengths):
            q, lens, table = data.paged_logits_args(metadata, tile.rows)
            scores = deep_gemm_fp4_paged_mqa_logits(
                q,
                data.k_cache,
                data.weights[tile.rows],
                lens,
                table,
                tile.schedule,
                metadata.max_compressed_seq_len,
            )
            yield tile, scores, lengths[tile.rows]
            del scores

    def _tiles(self, metadata: Any, lengths: torch.Tensor) -> Iterator[Tile]:
        rows, group = lengths.shape[0], metadata.rows_per_request
        width = metadata.max_compressed_seq_len
        bytes_a_row = row_bytes(width, self.topk_blocks, self.block_size)
        step = rows_per_tile(rows, group, bytes_a_row)
        if step == rows and not isinstance(metadata.deep_gemm_metadata, list):
            yield Tile(slice(0, rows), metadata.deep_gemm_metadata, metadata.topk_metadata)
            return
        for start in range(0, rows, step):
            yield _planned(metadata, lengths, slice(start, min(start + step, rows)))


def _planned(metadata: Any, lengths: torch.Tensor, rows: slice) -> Tile:
    """Return a tile with a schedule of its own, made on the device: a graph may capture it."""
    import deep_gemm
    from sglang.kernels.ops.attention.dsv4 import plan_topk_v2

    own = lengths[rows]
    schedule = deep_gemm.get_paged_mqa_logits_metadata(
        own.view(-1, metadata.rows_per_request),
        metadata.compressed_page_size,
        deep_gemm.get_num_sms(),
    )
    return Tile(rows, schedule, plan_topk_v2(own) if metadata.use_topk_v2 else None)


def slots_of(positions: torch.Tensor, table: torch.Tensor, page_size: int) -> torch.Tensor:
    """Return the pool slots, int32, of [rows, k] compressed positions; -1 stays -1.

    `table`: [rows, pages] int32, the page of each `page_size` positions.
    """
    known = positions.clamp_min(0)
    pages = table.gather(1, known // page_size).to(torch.int64)
    slots = pages * page_size + known % page_size
    return torch.where(positions >= 0, slots, -1).to(torch.int32)
