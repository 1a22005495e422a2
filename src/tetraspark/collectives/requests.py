"""The requests handed to the proxy, computed once a shape: sizes and places, no pointers."""

import math
from collections.abc import Sequence

from tetraspark.collectives.chunks import chunk_rows, places
from tetraspark.collectives.flags import Dtype, Op
from tetraspark.collectives.native import MAX_DIMS, Request


def reduce_request(
    world: int, dtype: Dtype, shape: Sequence[int], nbytes: int, op: Op = Op.ALL_REDUCE
) -> Request:
    """Return a one-shot all-reduce of one shape; `nbytes` of each rank."""
    request = _request(op, dtype, shape)
    request.bytes[:world] = [nbytes] * world
    request.last[:world] = [shape[-1] if shape else 0] * world
    return request


def two_shot_request(world: int, dtype: Dtype, shape: Sequence[int], nbytes: int) -> Request:
    """Return a two-shot all-reduce of one shape: the proxy goes on to its second half itself."""
    request = reduce_request(world, dtype, shape, nbytes, Op.TWO_SHOT_REDUCE)
    return _chunked(request, chunk_rows(nbytes, 1, world))


def scatter_request(
    dtype: Dtype, row_bytes: int, shape: Sequence[int], rows: Sequence[int], *, last: bool
) -> Request:
    """Return a reduce-scatter of one shape, sent with the scattered dimension first.

    `rows` are every rank's extent along that dimension: the last one, or the first; a row has
    `row_bytes`.
    """
    op = Op.REDUCE_SCATTER_LAST if last else Op.REDUCE_SCATTER_FIRST
    request = reduce_request(len(rows), dtype, shape, row_bytes * sum(rows), op)
    return _chunked(request, [row_bytes * extent for extent in rows])


def _chunked(request: Request, sizes: Sequence[int]) -> Request:
    """Give each rank a chunk, one after another, of so many bytes."""
    world = len(sizes)
    request.rows = 1
    request.row_bytes[:world] = sizes
    request.out_offset[:world] = places(sizes)
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
    request.out_offset[:world] = places(widths)
    request.out_stride = sum(widths)
    request.last[:world] = sizes if last else [shape[-1]] * world
    return request


def probe_request(op: Op, world: int, nbytes: int) -> Request:
    """Return a probe through the slots of one area, which fills `nbytes` a rank.

    An all-gather, but for the area of chunks: there each peer is sent `nbytes` of its own.
    """
    request = reduce_request(world, Dtype.UINT8, (nbytes,), nbytes, op)
    return _chunked(request, [nbytes] * world)


def _request(op: Op, dtype: Dtype, shape: Sequence[int]) -> Request:
    if len(shape) > MAX_DIMS:
        raise ValueError(f"{len(shape)} dimensions: wanted at most {MAX_DIMS}")
    request = Request(op=op, dtype=dtype, ndim=len(shape))
    request.dims[: len(shape)] = list(shape)
    return request
