"""The page scratch of SM12x's sparse attention, zeroed when it is allocated.

The engine copies only the pages that a step refers to and leaves the rest of the buffer as the
allocator returned it. A kernel that loads a masked slot and multiplies it by a zero probability
turns NaN bytes there into NaN outputs.
"""

from collections.abc import Callable
from typing import Any

import torch


def around_split_pages(
    original: Callable[..., torch.Tensor],
    kv_u8: torch.Tensor,
    src_pbs: int,
    touched_indices: torch.Tensor | None = None,
) -> torch.Tensor:
    """AROUND `_split_kv_pages_to_64`: see to it that its buffer exists and began as zeros.

    `kv_u8`: uint8 pages of `src_pbs` tokens; the buffer holds 64-token pages. It grows only, and
    outside CUDA-graph capture, as the engine's own allocation does.
    """
    from sglang.kernels.ops.attention import flash_mla_sm120

    pages = kv_u8.shape[0] * (src_pbs // flash_mla_sm120._PBS_DST)
    if src_pbs != flash_mla_sm120._PBS_DST:
        _zeroed(kv_u8.device, pages, flash_mla_sm120._BYTES_PER_DST_PAGE_PADDED)
    return original(kv_u8, src_pbs, touched_indices)


def _zeroed(device: torch.device, pages: int, page_bytes: int) -> None:
    from sglang.srt.runtime_context import get_resources

    buffers: dict[str, Any] = get_resources().buffers
    key = f"flash_mla_sm120_split:{device}"
    held = buffers.get(key)
    if held is None or held.shape[0] < pages:
        # Written again during graph capture, outside inference mode.
        with torch.inference_mode(False):
            buffers[key] = torch.zeros(pages, page_bytes, dtype=torch.uint8, device=device)
