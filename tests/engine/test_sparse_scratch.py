"""The scratch of SM12x's sparse attention holds no byte that nobody wrote.

The engine's `_split_kv_pages_to_64` runs as it is; its two Triton kernels are stood in for, and
the allocator hands out memory full of NaN, as one that reuses freed pages may.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch

from tests.engine.lab import in_engine

MODULE = "sglang.kernels.ops.attention.flash_mla_sm120"
POISON = 0xFF
"""NaN in fp8 e4m3, and twice in a row in bf16."""

TOKEN_BYTES, SOURCE_PAGE, PAGE = 584, 256, 64
DATA, SCALES = 576, 8


class Launched:
    """A Triton kernel's face: `kernel[grid](*arguments)`."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __getitem__(self, grid: Any) -> Any:
        return self._function


def mark_pages(indices: Any, mask: Any, count: int, page: int, block: int) -> None:
    mask[(indices[indices >= 0] // page).unique().long()] = 1


def split_pages(source: Any, out: Any, pages: int, *rest: Any) -> None:
    """Copy the touched pages: each 64 tokens' data, then their scales."""
    mask, masked = rest[-2:]
    for page in range(pages):
        if masked and not mask[page]:
            continue
        for part in range(SOURCE_PAGE // PAGE):
            target = out[page * (SOURCE_PAGE // PAGE) + part]
            data, scale = part * PAGE * DATA, SOURCE_PAGE * DATA + part * PAGE * SCALES
            target[: PAGE * DATA] = source[page, data : data + PAGE * DATA]
            target[PAGE * DATA :][: PAGE * SCALES] = source[page, scale : scale + PAGE * SCALES]


@contextmanager
def poisoned() -> Iterator[dict[str, torch.Tensor]]:
    """Yield the engine's buffers; memory it allocates without a value is POISON."""
    buffers: dict[str, torch.Tensor] = {}
    empty = torch.empty

    def filled(*shape: Any, **options: Any) -> torch.Tensor:
        return empty(*shape, **options).view(torch.uint8).fill_(POISON).view(options["dtype"])

    with (
        mock.patch(f"{MODULE}.torch.empty", filled),
        mock.patch(f"{MODULE}._page_mark_kernel", Launched(mark_pages)),
        mock.patch(f"{MODULE}._page_split_kernel", Launched(split_pages)),
        mock.patch(f"{MODULE}.triton.cdiv", lambda a, b: -(-a // b)),
        mock.patch(
            "sglang.srt.runtime_context.get_resources", lambda: SimpleNamespace(buffers=buffers)
        ),
    ):
        yield buffers


def pages(count: int) -> torch.Tensor:
    """Return source pages of zeros: finite in every format."""
    return torch.zeros(count, SOURCE_PAGE, 1, TOKEN_BYTES, dtype=torch.uint8)


def untouched(split: Any, count: int = 3) -> torch.Tensor:
    """Split `count` pages of which the second alone is referred to; return the bytes of others."""
    tokens = torch.tensor([[SOURCE_PAGE + 5, -1]], dtype=torch.int32)
    split(pages(count), SOURCE_PAGE, tokens)
    return tokens


@in_engine
def test_pages_that_no_token_refers_to_are_zero() -> None:
    from sglang.kernels.ops.attention import flash_mla_sm120

    with poisoned() as buffers:
        untouched(flash_mla_sm120._split_kv_pages_to_64)
        assert (buffers["flash_mla_sm120_split:cpu"] == 0).all()


@in_engine
def test_the_engine_alone_leaves_poison_there() -> None:
    from sglang.kernels.ops.attention import flash_mla_sm120

    with poisoned() as buffers:
        untouched(flash_mla_sm120._split_kv_pages_to_64.__wrapped__)
        held = buffers["flash_mla_sm120_split:cpu"]
        assert (held[:4] == POISON).all()
        assert (held[8:] == POISON).all()
        assert (held[4:8, : PAGE * TOKEN_BYTES] == 0).all()


def masked_attention(split: Any) -> torch.Tensor:
    """Attend to one token and one masked slot, as a kernel that loads slot 0 for a mask."""
    from sglang.kernels.ops.attention import flash_mla_sm120

    tokens = torch.tensor([[SOURCE_PAGE + 5, -1]], dtype=torch.int32)
    with poisoned():
        cache = split(pages(2), SOURCE_PAGE, tokens)
        loaded = flash_mla_sm120._gather_and_dequant(cache, tokens.clamp_min(0), PAGE)
    probability = torch.tensor([[1.0, 0.0]])
    return torch.einsum("bt,btd->bd", probability, loaded.float())


@in_engine
def test_a_zero_probability_times_the_scratch_is_zero() -> None:
    from sglang.kernels.ops.attention import flash_mla_sm120

    split = flash_mla_sm120._split_kv_pages_to_64
    assert not masked_attention(split).isnan().any()
    assert masked_attention(split.__wrapped__).isnan().any()


@in_engine
def test_the_buffer_is_kept_grows_and_is_not_cleared_again() -> None:
    from sglang.kernels.ops.attention import flash_mla_sm120

    with poisoned() as buffers:
        untouched(flash_mla_sm120._split_kv_pages_to_64)
        first = buffers["flash_mla_sm120_split:cpu"]
        first[0] = 1
        untouched(flash_mla_sm120._split_kv_pages_to_64)
        assert buffers["flash_mla_sm120_split:cpu"] is first
        assert (first[0] == 1).all()
        untouched(flash_mla_sm120._split_kv_pages_to_64, 5)
        assert buffers["flash_mla_sm120_split:cpu"].shape[0] == 20
        assert (buffers["flash_mla_sm120_split:cpu"] == 0).all()


@in_engine
def test_the_buffer_is_no_inference_tensor() -> None:
    from sglang.kernels.ops.attention import flash_mla_sm120

    with poisoned() as buffers, torch.inference_mode():
        untouched(flash_mla_sm120._split_kv_pages_to_64)
        assert not buffers["flash_mla_sm120_split:cpu"].is_inference()


@in_engine
def test_pages_of_64_tokens_need_no_scratch() -> None:
    from sglang.kernels.ops.attention import flash_mla_sm120

    with poisoned() as buffers:
        cache = torch.zeros(2, PAGE, 1, TOKEN_BYTES, dtype=torch.uint8)
        assert flash_mla_sm120._split_kv_pages_to_64(cache, PAGE) is cache
        assert buffers == {}
