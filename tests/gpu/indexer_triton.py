"""The Triton kernel of `indexer_kernels.py`, in a file that only a GPU machine imports."""

# ruff: noqa: ANN001

import triton
import triton.language as tl


# Triton would take annotations for the types of its arguments.
@triton.jit  # type: ignore[untyped-decorator]  # triton is not installed here
def score(  # type: ignore[no-untyped-def]  # as said above
    q,
    k,
    w,
    starts,
    out,
    rows,
    keys,
    stride,
    G: tl.constexpr,
    H: tl.constexpr,
    D: tl.constexpr,
    B: tl.constexpr,
) -> None:
    """Score G rows of H heads against B keys; `out` is [rows, stride], fp32 or bf16.

    A group may hold rows of two requests, not of three: each has its own first key.
    """
    group, block = tl.program_id(0), tl.program_id(1)
    lane = tl.arange(0, G * H)
    row, head, dim = group * G + lane // H, lane % H, tl.arange(0, D)
    column = block * B + tl.arange(0, B)
    own = group * G + tl.arange(0, G)
    first = tl.load(starts + group * G)
    last = tl.load(starts + tl.minimum(group * G + G - 1, rows - 1))
    start = tl.load(starts + own, mask=own < rows, other=0)
    weight = tl.load(w + row * H + head, mask=row < rows, other=0.0)
    at = (row * H + head)[:, None] * D + dim[None, :]
    a = tl.load(q + at, mask=row[:, None] < rows, other=0.0)
    key = first + column
    b = tl.load(k + key[:, None] * D + dim[None, :], mask=key[:, None] < keys, other=0.0)
    weighted = tl.maximum(tl.dot(a, tl.trans(b)), 0.0) * weight[:, None]
    total = tl.sum(tl.reshape(weighted, (G, H, B)), axis=1)
    if last != first:
        key = last + column
        b = tl.load(k + key[:, None] * D + dim[None, :], mask=key[:, None] < keys, other=0.0)
        weighted = tl.maximum(tl.dot(a, tl.trans(b)), 0.0) * weight[:, None]
        other = tl.sum(tl.reshape(weighted, (G, H, B)), axis=1)
        total = tl.where((start == first)[:, None], total, other)
    place = own[:, None].to(tl.int64) * stride + column[None, :]
    inside = (own[:, None] < rows) & (column[None, :] < stride)
    tl.store(out + place, total.to(out.dtype.element_ty), mask=inside)
