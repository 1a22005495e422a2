"""Index scores and top-k in place of DeepGEMM's and the engine's kernels, on a GPU or a CPU.

A score is sum over heads of weight * relu(q . k) with bf16 q and k and fp32 sums. The Triton
kernel (`indexer_triton.py`) has the shape of DeepGEMM's: a program scores a group of rows against
a block of keys, and no sum crosses rows, so a row's bits should depend on neither the height nor
the width of a tile.
"""

from typing import Any

import torch

HEADS, DIM = 32, 128
GROUP_ROWS, BLOCK_KEYS = 4, 128


class Logits:
    """`fp8_fp4_mqa_logits` of a stand-in `deep_gemm` module, on bf16 operands."""

    def __init__(self, device: str) -> None:
        self._device = device
        self.tiles: list[tuple[int, int]] = []

    def fp8_fp4_mqa_logits(
        self, q: Any, kv: Any, weights: Any, starts: Any, ends: Any, clean: Any, width: int,
        logits_dtype: torch.dtype,
    ) -> torch.Tensor:  # fmt: skip
        """Return [rows, width] scores in `logits_dtype`; undefined past each row's end."""
        rows = q[0].shape[0]
        self.tiles.append((rows, width))
        stride = -(-width // 256) * 256
        out = torch.empty(rows, stride, dtype=logits_dtype, device=q[0].device)
        if self._device == "cuda":
            self._on_gpu(q[0], kv[0], weights, starts, out, width)
        else:
            self._on_cpu(q[0], kv[0], weights, starts, out[:, :width])
        return out[:, :width]

    def _on_gpu(
        self, q: Any, k: Any, weights: Any, starts: Any, out: torch.Tensor, width: int
    ) -> None:
        from tests.gpu.indexer_triton import score

        rows, stride = out.shape
        grid = (-(-rows // GROUP_ROWS), -(-width // BLOCK_KEYS))
        score[grid](
            q, k, weights, starts, out, rows, k.shape[0], stride,
            GROUP_ROWS, HEADS, DIM, BLOCK_KEYS, num_warps=8,
        )  # fmt: skip

    def _on_cpu(self, q: Any, k: Any, weights: Any, starts: Any, out: torch.Tensor) -> None:
        """One product a request: the operands are integers here, so any order of sums is exact."""
        out.fill_(0)
        for start in starts.unique().tolist():
            mine, keys = starts == start, k[start : start + out.shape[1]].float()
            heads = (q[mine].float() @ keys.T).relu_()
            out[mine, : len(keys)] = torch.einsum("rh,rhc->rc", weights[mine], heads).to(out.dtype)


def topk_ragged(logits: Any, lens: Any, *, out: torch.Tensor, offsets: torch.Tensor) -> None:
    """Fill `out` as the engine's kernel does: the top-k of each row's first `lens` columns."""
    columns = torch.arange(logits.shape[1], device=logits.device)
    seen = logits.masked_fill(columns >= lens[:, None], -torch.inf)
    top = seen.topk(min(out.shape[1], logits.shape[1]), dim=-1)
    found = torch.where(top.values > -torch.inf, top.indices + offsets[:, None], -1)
    out.fill_(-1)
    out[:, : found.shape[1]] = found
