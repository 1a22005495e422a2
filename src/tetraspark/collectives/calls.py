"""From tensors to operations: what fits, and what is sent and filled."""

import math
from collections.abc import Sequence

import torch

from tetraspark.collectives import native
from tetraspark.collectives.algorithm import Algorithm
from tetraspark.collectives.chunks import chunk_rows
from tetraspark.collectives.flags import UNIT
from tetraspark.collectives.opening import Link
from tetraspark.collectives.pending import Pending
from tetraspark.collectives.requests import (
    gather_request,
    reduce_request,
    scatter_request,
    two_shot_request,
)
from tetraspark.collectives.tensors import check_out, dtype_of, reducible

REMEMBERED_SHAPES = 4096


class Calls:
    """Prepares the operations of one group; sends nothing."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._rank = link.rank
        self._world = link.layout.world
        self._requests: dict[object, native.Request] = {}

    def fits(self, nbytes: int, dtype: torch.dtype, algorithm: Algorithm | None) -> bool:
        """Say whether an all-reduce of this size is taken."""
        limit = self._limit(self._algorithm(algorithm, nbytes))
        return reducible(dtype) and nbytes % UNIT == 0 and 0 < nbytes <= limit

    def _algorithm(self, chosen: Algorithm | None, nbytes: int) -> Algorithm:
        # A plain "two-shot" is taken as well, another word refused.
        return Algorithm(chosen or self._link.settings.algorithm_for(nbytes))

    def _limit(self, algorithm: Algorithm) -> int:
        layout = self._link.layout
        return layout.two_shot_bytes if algorithm is Algorithm.TWO_SHOT else layout.reduce_bytes

    def fits_gather(self, nbytes: int) -> bool:
        """Say whether shards of at most `nbytes` are gathered."""
        return 0 <= nbytes <= self._link.layout.gather_bytes

    def fits_scatter(self, shape: Sequence[int], dtype: torch.dtype, dim: int) -> bool:
        """Say whether a reduce-scatter of this shape along dimension `dim` is taken."""
        layout = self._link.layout
        nbytes = math.prod(shape) * dtype.itemsize
        if not reducible(dtype) or nbytes % UNIT or not 0 < nbytes <= layout.two_shot_bytes:
            return False
        row_bytes = nbytes // shape[dim]
        return chunk_rows(shape[dim], row_bytes, self._world)[0] * row_bytes <= layout.chunk_bytes

    def reduce(
        self, tensor: torch.Tensor, out: torch.Tensor | None, algorithm: Algorithm | None
    ) -> tuple[Pending, torch.Tensor, torch.Tensor]:
        """Return the operation, the contiguous tensor it fills, and the caller's target."""
        request = self._reduce_request(tensor, algorithm)
        target = torch.empty_like(tensor) if out is None else out
        if out is not None and out is not tensor:
            check_out(out, tuple(tensor.shape), tensor)
        # A copy, not a refusal: contiguity may differ between ranks, the route must not.
        source = tensor if tensor.is_contiguous() else tensor.contiguous()
        filled = target if target.is_contiguous() else torch.empty(tensor.shape, dtype=tensor.dtype)
        return self._pending(request, source, filled), filled, target

    def gather(
        self, tensor: torch.Tensor, dim: int, sizes: Sequence[int] | None
    ) -> tuple[Pending, torch.Tensor]:
        """Return the operation and the new tensor it fills."""
        shape = tuple(tensor.shape)
        axis = _axis(shape, dim)
        last = axis != 0
        extents = tuple(sizes) if sizes is not None else (shape[axis],) * self._world
        self._check_sizes(extents, shape[axis], last=last)
        request = gather_request(dtype_of(tensor), tensor.itemsize, shape, extents, last=last)
        largest = max(request.bytes[: self._world])
        if not self.fits_gather(largest):
            limit = self._link.layout.gather_bytes
            raise ValueError(f"a shard of {largest} bytes does not fit: at most {limit}")
        whole = list(shape)
        whole[axis] = sum(extents)
        result = torch.empty(whole, dtype=tensor.dtype)
        return self._pending(request, tensor.contiguous(), result), result

    def scatter(self, tensor: torch.Tensor, dim: int) -> tuple[Pending, torch.Tensor]:
        """Return the operation and the new tensor it fills: a view of it where `dim` is the last.

        The scattered dimension is brought to the front, so that every share is one piece.
        """
        shape, dtype = tuple(tensor.shape), dtype_of(tensor)
        axis = _axis(shape, dim)
        if not self.fits_scatter(shape, tensor.dtype, axis):
            layout = self._link.layout
            raise ValueError(
                f"{list(shape)} of {tensor.dtype} does not fit: wanted bf16, fp16 or fp32, a "
                f"multiple of 16 bytes, at most {layout.two_shot_bytes} (max_two_shot_bytes) and "
                f"{layout.chunk_bytes} for one rank along dim {dim}"
            )
        row_bytes = tensor.nbytes // shape[axis]
        rows = chunk_rows(shape[axis], row_bytes, self._world)
        request = scatter_request(dtype, row_bytes, shape, rows, last=axis != 0)
        source = tensor.movedim(axis, 0).contiguous()
        share = torch.empty((rows[self._rank], *source.shape[1:]), dtype=tensor.dtype)
        return self._pending(request, source, share), share.movedim(0, axis)

    def _reduce_request(self, tensor: torch.Tensor, chosen: Algorithm | None) -> native.Request:
        key = (tensor.dtype, tensor.shape, tensor.device.type, chosen)
        request = self._requests.get(key)
        if request is not None:
            return request
        dtype, nbytes = dtype_of(tensor), tensor.nbytes
        algorithm = self._algorithm(chosen, nbytes)
        if not self.fits(nbytes, tensor.dtype, algorithm):
            raise ValueError(
                f"{nbytes} bytes of {tensor.dtype} do not fit: wanted bf16, fp16 or fp32, a "
                f"multiple of 16 bytes, at most {self._limit(algorithm)} for {algorithm}"
            )
        if len(self._requests) >= REMEMBERED_SHAPES:
            self._requests.clear()
        make = two_shot_request if algorithm is Algorithm.TWO_SHOT else reduce_request
        return self._requests.setdefault(key, make(self._world, dtype, tensor.shape, nbytes))

    def _check_sizes(self, extents: tuple[int, ...], own: int, *, last: bool) -> None:
        if len(extents) != self._world or extents[self._rank] != own or min(extents) < 0:
            raise ValueError(
                f"sizes {list(extents)}: wanted {self._world}, the one of rank {self._rank} {own}"
            )
        if not last and len(set(extents)) > 1:
            raise ValueError("unequal shards are gathered on the last dimension only")

    def _pending(
        self, request: native.Request, source: torch.Tensor, result: torch.Tensor
    ) -> Pending:
        link = self._link
        tensors = (source, result)
        return Pending(link.endpoint, link.supervisor, link.transport, request, tensors)


def _axis(shape: tuple[int, ...], dim: int) -> int:
    """Return 0 for the first dimension, -1 for the last."""
    if not shape or dim not in (0, -1, len(shape) - 1):
        raise ValueError(f"dim {dim} of {list(shape)}: wanted the first (0) or last (-1)")
    return 0 if dim == 0 else -1
