"""The choice of backends on SM12x, with the engine's own functions told what GPU they run on."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
import torch

from tests.engine.decode import PAGE
from tests.engine.lab import in_engine
from tests.engine.split_ranks import PLANNED
from tetraspark.engine import candidate_indexer
from tetraspark.engine.paged_candidates import PagedCandidates

V41 = "sglang.srt.layers.attention.dsv4.v41_indexer"
PARTS = {
    "token_to_kv_pool": "pool",
    "req_to_token": "table",
    "page_size": 256,
    "candidate_topk_blocks": 2048,
    "candidate_block_size": 8,
}


@contextmanager
def gpu(major: int, deep_gemm: bool = True) -> Iterator[None]:
    """Let the engine believe in a GPU of this capability, with DeepGEMM's dense kernels."""
    with (
        mock.patch(f"{V41}.is_sm100_or_newer", lambda: major >= 10),
        mock.patch(f"{V41}._use_deep_gemm_prefill", lambda: deep_gemm),
        mock.patch.object(candidate_indexer, "is_sm12x", lambda: major == 12),
    ):
        yield


def made(**parts: Any) -> Any:
    """Call the name through which the attention backend makes its indexer."""
    from sglang.srt.layers.attention import deepseek_v4_backend

    return deepseek_v4_backend.make_candidate_indexer(**{**PARTS, **parts})


@in_engine
def test_the_engine_alone_refuses_sm12x() -> None:
    from sglang.srt.layers.attention.dsv4 import v41_indexer

    original = v41_indexer.make_candidate_indexer.__wrapped__
    with gpu(12), pytest.raises(RuntimeError, match="paged sparse MQA logits"):
        original(**PARTS)


@pytest.mark.parametrize("deep_gemm", [True, False])
@in_engine
def test_sm12x_gets_dense_blocks_and_paged_candidates(deep_gemm: bool) -> None:
    from sglang.srt.layers.attention.dsv4.v41_indexer.dense_blocks import DenseBlocksBackend

    with gpu(12, deep_gemm):
        prefill, decode = made()
    assert isinstance(prefill, DenseBlocksBackend)
    assert prefill.use_deep_gemm_prefill is deep_gemm
    assert (prefill.topk_blocks, prefill.block_size, prefill.req_to_token) == (2048, 8, "table")
    assert isinstance(decode, PagedCandidates)
    assert (decode.topk_blocks, decode.token_to_kv_pool) == (2048, "pool")


@in_engine
def test_other_gpus_and_models_get_the_engines_own() -> None:
    with gpu(9, deep_gemm=False):
        prefill, decode = made()
        assert prefill is decode
    with gpu(12):
        prefill, decode = made(candidate_topk_blocks=0)
        assert prefill is decode


@in_engine
def test_a_planned_split_without_the_fp4_kernel_ends_the_engine() -> None:
    refused = pytest.raises(SystemExit, match="has no fp4 indexer kernel")
    with gpu(9, deep_gemm=False), mock.patch.dict(os.environ, PLANNED), refused:
        made()
    with gpu(12), mock.patch.dict(os.environ, PLANNED):
        assert made()


def planned_by(major: int, ratio: int, flag: bool) -> str:
    """Return which planner wrote the schedule of the backend's own metadata method."""
    import deep_gemm  # the stand-in below
    from sglang.srt.layers.attention.deepseek_v4_backend import DeepseekV4AttnBackend

    called: list[str] = []

    def planner(name: str) -> Any:
        def plan(*_: Any) -> torch.Tensor:
            called.append(name)
            return torch.zeros(1)

        return plan

    vars(deep_gemm)["get_paged_mqa_logits_metadata"] = planner("DeepGEMM")
    backend = DeepseekV4AttnBackend.__new__(DeepseekV4AttnBackend)
    vars(backend).update(
        enable_deepseek_v4_fp4_indexer=flag,
        page_size=256,
        dsa_topk_backend=SimpleNamespace(should_use_topk_v2=lambda: False),
        token_to_kv_pool=SimpleNamespace(get_index_k_page_size=lambda ratio: PAGE),
    )
    lengths = torch.tensor([5, 9], dtype=torch.int32)
    core = SimpleNamespace(
        page_table=torch.zeros(2, 4, dtype=torch.int32),
        c1_topk_lengths_clamp1=lengths,
        c2_topk_lengths_clamp1=lengths,
        c4_topk_lengths_raw=lengths,
    )
    jit = mock.patch(
        "sglang.kernels.ops.attention.dsv4.get_paged_mqa_logits_metadata", planner("JIT")
    )
    platform = mock.patch(
        "sglang.srt.layers.attention.deepseek_v4_backend.get_platform",
        lambda: SimpleNamespace(is_sm120=major == 12),
    )
    with gpu(major), jit, platform:
        backend.init_forward_metadata_indexer(core, compress_ratio=ratio)
    assert backend.enable_deepseek_v4_fp4_indexer is flag
    return called[0]


@in_engine
def test_schedules_of_the_low_ratios_come_from_deep_gemm_on_sm12x() -> None:
    from tests.engine.kernels import stand_ins

    with stand_ins():
        assert [planned_by(12, ratio, flag=False) for ratio in (1, 2)] == ["DeepGEMM"] * 2
        assert planned_by(12, 4, flag=False) == "JIT"
        assert planned_by(12, 4, flag=True) == "DeepGEMM"
        assert [planned_by(10, ratio, flag=False) for ratio in (1, 2)] == ["JIT"] * 2
