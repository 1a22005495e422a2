"""Prefill batches on a device, and the engine's functions over them with stand-in kernels."""

import sys
import types
from typing import Any

import torch

from tests.gpu.engine_source import PrefillData, load
from tests.gpu.indexer_kernels import DIM, HEADS, Logits, topk_ragged
from tetraspark.engine import local_blocks, prefill_split

TOPK, TOPK_BLOCKS, BLOCK, BUDGET = 512, 2048, 8, 2 << 30


def batch(requests: tuple[tuple[int, int], ...], device: str, ties: bool = False) -> Any:
    """Return (`PrefillData`, keys): random operands, or few integers so that scores are equal."""
    generator = torch.Generator(device).manual_seed(0)
    rows, columns = sum(n for _, n in requests), sum(length for length, _ in requests)

    def values(*shape: int) -> torch.Tensor:
        made = torch.randn(shape, generator=generator, device=device)
        if ties:
            made = (made > 1.5).float()
        return (made.round() if device == "cpu" else made).to(torch.bfloat16)

    starts, lens, first = [], [], 0
    for length, count in requests:
        starts += [first] * count
        lens += list(range(length - count + 1, length + 1))
        first += length
    data = PrefillData(
        k_slots=torch.arange(columns, device=device),
        request_starts=torch.tensor(starts, dtype=torch.int32, device=device),
        lens_per_request=[length for length, _ in requests],
        rows_per_request=[count for _, count in requests],
        compress_lens=torch.tensor(lens, dtype=torch.int32, device=device),
        q_fp4=values(rows, HEADS, DIM),
        q_sf=torch.zeros(rows, HEADS, dtype=torch.int32, device=device),
        weights=values(rows, HEADS).float(),
    )
    return data, (values(columns, DIM), torch.zeros(columns, dtype=torch.int32, device=device))


class Engine:
    """The three functions of the engine that a split wraps, over stand-in kernels."""

    def __init__(self, device: str, dtype: torch.dtype, budget: int = BUDGET) -> None:
        self.device = device
        self.logits = Logits(device)
        module = types.ModuleType("deep_gemm")
        vars(module)["fp8_fp4_mqa_logits"] = self.logits.fp8_fp4_mqa_logits
        sys.modules["deep_gemm"] = module
        self.names = load(topk_ragged, dtype, budget)

    def layers(self, data: Any, kv: Any) -> tuple[torch.Tensor, ...]:
        """Run a full top-k, a source and a consumer; split where a scope is open."""
        full = data.empty_selection(TOPK)
        prefill_split.around_full_topk(self.names["dense_prefill_topk"], data, kv, out=full)
        selected, blocks = prefill_split.around_publish(
            self.names["_publish_prefill_blocks"],
            data=data, kv=kv, topk=TOPK, topk_blocks=TOPK_BLOCKS, block_size=BLOCK,
        )  # fmt: skip
        consumed = prefill_split.around_consume(
            self.names["_consume_prefill_blocks"],
            data=data, kv=kv, topk=TOPK, blocks=blocks, block_size=BLOCK,
        )  # fmt: skip
        return full, selected, consumed, local_blocks.all_rows(blocks)
