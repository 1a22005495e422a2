"""The requests handed to the proxy, computed once a shape: sizes and places, no pointers."""

import math
from collections.abc import Sequence

from tetraspark.collectives.flags import Dtype, Op
from tetraspark.collectives.native import MAX_DIMS, Request


def reduce_request(world: int, dtype: Dtype, shape: Sequence[int], nbytes: int) -> Request:
    """Return an all-reduce of one shape; `nbytes` of each rank."""
    request = _request(Op.ALL_REDUCE, dtype, shape)
    request.bytes[:world] = [nbytes] * world
    request.last[:world] = [shape[-1] if shape else 0] * world
    return request


def gather_request(
    dtype: Dtype, itemsize: int, shape: Sequence[int], sizes: Sequence[int], *, last: bool
) -> Request:
    """Return an all-gather of a shard of `shape`.

    `sizes` are every rank's extent along the gathered dimension: the last one, or (all equal)
    the first.
    """
    world = len(sizes)
    request = _request(Op.GATHER_LAST if last else Op.GATHER_FIRST, dtype, shape)
    rows = math.prod(shape[:-1]) if last else 1
    row = itemsize if last else itemsize * math.prod(shape[1:])
    widths = [row * size for size in sizes]
    request.rows = rows
    request.bytes[:world] = [rows * width for width in widths]
    request.row_bytes[:world] = widths
    request.out_offset[:world] = [sum(widths[:rank]) for rank in range(world)]
    request.out_stride = sum(widths)
    request.last[:world] = sizes if last else [shape[-1]] * world
    return request


def probe_request(op: Op, world: int, nbytes: int) -> Request:
    """Return a probe: an all-gather of `nbytes` through the slots of one area."""
    request = _request(op, Dtype.UINT8, (nbytes,))
    request.rows = 1
    request.bytes[:world] = [nbytes] * world
    request.row_bytes[:world] = [nbytes] * world
    request.out_offset[:world] = [rank * nbytes for rank in range(world)]
    request.last[:world] = [nbytes] * world
    return request


def _request(op: Op, dtype: Dtype, shape: Sequence[int]) -> Request:
    if len(shape) > MAX_DIMS:
        raise ValueError(f"{len(shape)} dimensions: wanted at most {MAX_DIMS}")
    request = Request(op=op, dtype=dtype, ndim=len(shape))
    request.dims[: len(shape)] = list(shape)
    return request
