"""Prefill batches for the engine's real indexer classes, and what they select."""

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import torch

from tests.engine.kernels import UNIT_SCALE

UNWRITTEN = 1 << 30
"""What the buffers of a selection hold before it."""

LAYERS = (2, 20, 24)
"""A full top-k layer, the candidate source, a consumer."""


@dataclass(frozen=True)
class Shape:
    """`requests`: (context, query rows) of each, the rows its newest; `tail` rows of each."""

    requests: tuple[tuple[int, int], ...]
    ratio: int = 1
    heads: int = 32
    topk: int = 8
    topk_blocks: int = 4
    seed: int = 0

    @property
    def rows(self) -> int:
        return sum(rows for _, rows in self.requests)

    @property
    def rows_per_request(self) -> list[int]:
        return [rows for _, rows in self.requests]

    def with_ratio(self, ratio: int) -> "Shape":
        return replace(self, ratio=ratio)


class Pool:
    """Keys of a layer by slot, as the engine's pool gives them back."""

    def __init__(self, slots: int, generator: torch.Generator) -> None:
        self.keys = fp4(slots, 1, generator)[:, 0]

    def get_low_ratio_index_k_fp4(self, layer: int, slots: torch.Tensor) -> Any:
        return self.keys.roll(layer, 0)[slots], torch.full(slots.shape, UNIT_SCALE).int()


def fp4(rows: int, heads: int, generator: torch.Generator) -> torch.Tensor:
    """Return packed fp4 [rows, heads, 64] int8 of small integers, most of them zero."""
    codes = torch.tensor([0, 2, 4, 10, 5, 12])
    values = torch.zeros(rows, heads, 128, dtype=torch.int64)
    values[..., :12] = codes[torch.randint(0, len(codes), (rows, heads, 12), generator=generator)]
    return (values[..., 0::2] | values[..., 1::2] << 4).to(torch.int8)


@dataclass(frozen=True)
class Batch:
    """One prefill step of every layer: the same on every rank."""

    shape: Shape
    pool: Pool
    req_to_token: torch.Tensor
    positions: torch.Tensor
    operands: dict[int, Any]

    @classmethod
    def make(cls, shape: Shape) -> "Batch":
        generator = torch.Generator().manual_seed(shape.seed)
        longest = max(context for context, _ in shape.requests)
        slots = len(shape.requests) * (longest + 2)
        table = torch.randperm(slots, generator=generator).view(len(shape.requests), -1)
        positions = [
            torch.arange(context - rows, context, dtype=torch.int64)
            for context, rows in shape.requests
        ]
        operands = {layer: queries(shape, generator) for layer in LAYERS}
        # A compressed position lives in the slot of its first token, divided by the ratio.
        req_to_token = (table * shape.ratio).repeat_interleave(shape.ratio, dim=1)
        return cls(shape, Pool(slots, generator), req_to_token, torch.cat(positions), operands)

    def inputs(self, layer: int, rows_per_request: list[int] | None = None) -> Any:
        """Return the engine's `PrefillInputs`; with tail rows of each request, if so told."""
        from sglang.srt.layers.attention.dsv4.v41_indexer.scoring import prefill_k_slots
        from sglang.srt.layers.attention.dsv4.v41_indexer.types import PrefillInputs

        shape = self.shape
        counts = shape.rows_per_request if rows_per_request is None else rows_per_request
        rows = self.rows_of(counts)
        ids = torch.arange(len(shape.requests))
        contexts = [context for context, _ in shape.requests]
        operands = tuple(part[rows] for part in self.operands[layer])
        buffers = [
            torch.full((len(rows), shape.topk), UNWRITTEN, dtype=torch.int32) for _ in range(2)
        ]
        return PrefillInputs(
            indexer=SimpleNamespace(index_topk=shape.topk, operands=operands),
            layer_id=layer,
            compress_ratio=shape.ratio,
            freqs_cis=torch.empty(0),
            x=torch.empty(len(rows), 1),
            q_lora=torch.empty(len(rows), 1),
            positions=self.positions[rows],
            req_rows=torch.repeat_interleave(ids, torch.tensor(counts)),
            req_pool_indices=ids,
            k_slots=prefill_k_slots(
                req_to_token=self.req_to_token,
                req_pool_indices=ids,
                seq_lens_cpu=contexts,
                ratio=shape.ratio,
            ),
            index_plans=None,
            kv_page_table=torch.empty(0),
            seq_lens_cpu=contexts,
            rows_per_request=counts,
            rows_per_request_device=torch.tensor(counts, dtype=torch.int32),
            out_raw_indices=buffers[0],
            out_page_indices=buffers[1],
        )

    def rows_of(self, counts: list[int]) -> torch.Tensor:
        """Return the last `counts` rows of each request, of the rows of the batch."""
        found, start = [], 0
        for full, count in zip(self.shape.rows_per_request, counts, strict=True):
            found += list(range(start + full - count, start + full))
            start += full
        return torch.tensor(found, dtype=torch.int64)


def queries(shape: Shape, generator: torch.Generator) -> Any:
    q = fp4(shape.rows, shape.heads, generator)
    weights = torch.randint(-2, 4, (shape.rows, shape.heads), generator=generator)
    return q, torch.full(q.shape[:2], UNIT_SCALE).int(), weights.float()


def backends(batch: Batch) -> tuple[Any, Any]:
    """Return the engine's full top-k and candidate backends over this batch's pool."""
    from sglang.srt.layers.attention.dsv4.v41_indexer.dense_blocks import DenseBlocksBackend
    from sglang.srt.layers.attention.dsv4.v41_indexer.full_topk import FullTopKIndexer

    full = FullTopKIndexer(
        token_to_kv_pool=batch.pool, req_to_token=batch.req_to_token,
        use_deep_gemm_prefill=True, use_deep_gemm_decode=True,
    )  # fmt: skip
    dense = DenseBlocksBackend(
        token_to_kv_pool=batch.pool, req_to_token=batch.req_to_token,
        candidate_topk_blocks=batch.shape.topk_blocks, candidate_block_size=8,
        use_deep_gemm_prefill=True,
    )  # fmt: skip
    return full, dense


def select(batch: Batch, tail: list[int] | None = None) -> dict[str, torch.Tensor]:
    """Run the three layers of a step; return what each of them selected.

    `tail`: rows of each request that the consumer runs on, when they are not all.
    """
    full, dense = backends(batch)
    ran = {layer: batch.inputs(layer, tail if layer == LAYERS[2] else None) for layer in LAYERS}
    full.topk_prefill(ran[LAYERS[0]])
    published = dense.publish_prefill(ran[LAYERS[1]])
    if published is not None and tail is not None:
        published = published.tail(tail)
    dense.consume_prefill(ran[LAYERS[2]], published)
    return {
        f"layer {layer} {name}": getattr(ran[layer], name)
        for layer in LAYERS
        for name in ("out_raw_indices", "out_page_indices")
    }
