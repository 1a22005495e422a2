"""The V4.1 candidate indexer on SM12x (GB10 is SM121), where the engine's own choice raises.

The engine takes every GPU from SM100 on for one with DeepGEMM's sparse kernels. SM12x has the
dense ones only: prefill goes by block ids, decode by `PagedCandidates`.
"""

import os
from collections.abc import Callable
from typing import Any

from tetraspark.engine import receipts
from tetraspark.engine.paged_candidates import PagedCandidates
from tetraspark.engine.split_env import split_settings

LOW_RATIOS = (1, 2)
"""Compression ratios of the V4.1 index layers."""


def is_sm12x() -> bool:
    """Tell whether the engine runs on SM120 or SM121."""
    from sglang.srt.runtime_context import get_platform

    return bool(get_platform().is_sm120)


def around_make_candidate_indexer(original: Callable[..., Any], **parts: Any) -> Any:
    """AROUND `make_candidate_indexer`: return (prefill, decode) backends that SM12x can run.

    Raises SystemExit when a prefill split is planned and the engine scores by another path.
    """
    from sglang.srt.layers.attention.dsv4 import v41_indexer

    deep_gemm = v41_indexer._use_deep_gemm_prefill()
    if not deep_gemm and split_settings(os.environ) is not None:
        receipts.refuse(["a prefill split is planned, and this engine has no fp4 indexer kernel"])
    if not is_sm12x() or parts["candidate_topk_blocks"] <= 0:
        return original(**parts)
    return _dense_prefill(deep_gemm, **parts), PagedCandidates(
        parts["token_to_kv_pool"], parts["candidate_topk_blocks"], parts["candidate_block_size"]
    )


def _dense_prefill(deep_gemm: bool, *, page_size: int, **parts: Any) -> Any:
    from sglang.srt.layers.attention.dsv4.v41_indexer.dense_blocks import DenseBlocksBackend

    return DenseBlocksBackend(use_deep_gemm_prefill=deep_gemm, **parts)


def around_indexer_metadata(
    original: Callable[..., Any], backend: Any, *arguments: Any, **named: Any
) -> Any:
    """AROUND `init_forward_metadata_indexer`: on SM12x, schedules come from DeepGEMM.

    Its fp4 kernel there splits keys by 128; the engine's own planner writes schedules for 256,
    and is used unless `--enable-deepseek-v4-fp4-indexer` is given. The V4.1 index layers have no
    other kernel, so for their ratios the flag is on during this call.
    """
    if named.get("compress_ratio") not in LOW_RATIOS or not is_sm12x():
        return original(backend, *arguments, **named)
    given = backend.enable_deepseek_v4_fp4_indexer
    backend.enable_deepseek_v4_fp4_indexer = True
    try:
        return original(backend, *arguments, **named)
    finally:
        backend.enable_deepseek_v4_fp4_indexer = given
