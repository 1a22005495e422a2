"""Functions of the engine, run from their source text without importing the engine.

A GPU machine may have torch and triton and not the engine's other needs. Its block selection, its
tiler and the three functions that a split wraps are plain torch: their text is read from the
installed package, or from a folder `sglang` on PYTHONPATH, and run as it is.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields
from typing import Any

import torch

from tetraspark.engine.definitions import Definitions
from tetraspark.engine.tree import FolderTree, package_root

OPS = "sglang.kernels.ops.attention.dsv4"
V41 = "sglang.srt.layers.attention.dsv4.v41_indexer"
FUNCTIONS = (
    "sglang.srt.layers.attention.mqa_logits_utils.mqa_logits_row_bytes",
    "sglang.srt.layers.attention.mqa_logits_utils.mqa_logits_rows_per_chunk",
    f"{OPS}.index_logits.flat_index_logits_rows_per_tile",
    f"{OPS}.index_logits.flat_index_logits_tiles",
    f"{OPS}.candidate_blocks.select_candidate_block_ids",
    f"{OPS}.candidate_blocks.topk_among_blocks",
    f"{V41}.scoring.score_tiles",
    f"{V41}.scoring.dense_prefill_topk",
    f"{V41}.dense_blocks._publish_prefill_blocks",
    f"{V41}.dense_blocks._publish_tile_blocks",
    f"{V41}.dense_blocks._consume_prefill_blocks",
    f"{V41}.dense_blocks._consume_tile_blocks",
    f"{V41}.dense_blocks._requests_in_tile",
)


@dataclass(frozen=True)
class PrefillData:
    """The fields of the engine's `DeepGEMMPrefillData`, and what its functions use of it."""

    k_slots: torch.Tensor
    request_starts: torch.Tensor
    lens_per_request: list[int]
    rows_per_request: list[int]
    compress_lens: torch.Tensor
    q_fp4: torch.Tensor
    q_sf: torch.Tensor
    weights: torch.Tensor

    @property
    def __struct_fields__(self) -> tuple[str, ...]:
        return tuple(field.name for field in fields(self))

    @property
    def num_rows(self) -> int:
        return self.q_fp4.shape[0]

    def empty_selection(self, topk: int) -> torch.Tensor:
        return self.request_starts.new_full((self.num_rows, topk), -1, dtype=torch.int32)


def ceil_div(number: int, step: int) -> int:
    return -(-number // step)


def load(topk_ragged: Any, dtype: torch.dtype, budget_bytes: int) -> dict[str, Any]:
    """Return the functions by name. Raises RuntimeError where the engine's files are absent."""
    root = package_root("sglang")
    if root is None:
        raise RuntimeError("no folder sglang: install the engine, or put its files on PYTHONPATH")
    names: dict[str, Any] = {
        "torch": torch,
        "F": torch.nn.functional,
        "topk_ragged": topk_ragged,
        "index_logits_dtype": lambda: dtype,
        "index_weights_dtype": lambda: torch.float32,
        "ceil_div": ceil_div,
        "ceil_align": lambda number, step: ceil_div(number, step) * step,
        "MQA_LOGITS_BYTES_PER_ELEM": 4,
        "MQA_LOGITS_ROW_ALIGN_ELEMS": 256,
        "FLAT_LOGITS_WIDTH_ALIGN": 64,
        "_DEEP_GEMM_SCORE_BUDGET_BYTES": budget_bytes,
        "functools": functools,
    }
    definitions = Definitions(FolderTree(root))
    for path in FUNCTIONS:
        source = definitions.source_at(path)
        if source is None:
            raise RuntimeError(f"{path}: not under {root}")
        exec(f"from __future__ import annotations\n{source}", names)
    return names
