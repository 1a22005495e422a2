"""Tensors of a GPU to requests of the kernels, checked; copies only what kernels cannot address."""

import math
from collections.abc import Sequence

import torch

from tetraspark.collectives import native
from tetraspark.collectives.algorithm import Algorithm
from tetraspark.collectives.chunks import chunk_rows
from tetraspark.collectives.flags import UNIT
from tetraspark.collectives.layout import Layout
from tetraspark.collectives.requests import (
    gather_request,
    reduce_request,
    scatter_request,
    two_shot_request,
)
from tetraspark.collectives.tensors import DTYPES, reducible

Prepared = tuple[native.Request, torch.Tensor, torch.Tensor]
"""The request, and the tensors whose addresses it holds: what is read, what is written."""


class Requests:
    """Makes requests for one rank. What is refused is the same on every rank."""

    def __init__(self, layout: Layout, rank: int, device: torch.device) -> None:
        self._layout = layout
        self._rank = rank
        self._device = device

    def fits(self, nbytes: int, dtype: torch.dtype, algorithm: Algorithm) -> bool:
        """Say whether an all-reduce of this size is taken."""
        limit = self._limit(algorithm)
        return reducible(dtype) and nbytes % UNIT == 0 and 0 < nbytes <= limit

    def fits_scatter(self, shape: Sequence[int], dtype: torch.dtype, dim: int) -> bool:
        """Say whether a reduce-scatter of this shape along dimension `dim` is taken."""
        nbytes, layout = math.prod(shape) * dtype.itemsize, self._layout
        if not self.fits(nbytes, dtype, Algorithm.TWO_SHOT):
            return False
        row_bytes = nbytes // shape[dim]
        return chunk_rows(shape[dim], row_bytes, layout.world)[0] * row_bytes <= layout.chunk_bytes

    def reduce(
        self, tensor: torch.Tensor, out: torch.Tensor | None, algorithm: Algorithm
    ) -> Prepared:
        """Return an all-reduce; of two-shot, its first half. Raises ValueError or TypeError."""
        self._check_device(tensor)
        nbytes, world = tensor.nbytes, self._layout.world
        if not self.fits(nbytes, tensor.dtype, algorithm):
            raise ValueError(
                f"{nbytes} bytes of {tensor.dtype} do not fit: wanted bf16, fp16 or fp32, a "
                f"multiple of 16 bytes, at most {self._limit(algorithm)} for {algorithm}"
            )
        if out is not None:
            self._check_out(out, tensor)
        source = addressable(tensor)
        result = torch.empty_like(source) if out is None or not can_take(out, source) else out
        make = two_shot_request if algorithm is Algorithm.TWO_SHOT else reduce_request
        request = make(world, DTYPES[tensor.dtype], tuple(tensor.shape), nbytes)
        request.input = source.data_ptr()
        request.output = result.data_ptr() + request.out_offset[self._rank]
        return request, source, result

    def scatter(self, tensor: torch.Tensor, dim: int) -> Prepared:
        """Return a reduce-scatter, its result new, the scattered dimension first."""
        self._check_device(tensor)
        shape = tuple(tensor.shape)
        axis = self._axis(shape, dim)
        if not self.fits_scatter(shape, tensor.dtype, axis):
            raise ValueError(
                f"{list(shape)} of {tensor.dtype} does not fit: wanted bf16, fp16 or fp32, a "
                f"multiple of 16 bytes, at most {self._layout.two_shot_bytes} "
                f"(max_two_shot_bytes) and {self._layout.chunk_bytes} for one rank along dim {dim}"
            )
        row_bytes = tensor.nbytes // shape[axis]
        rows = chunk_rows(shape[axis], row_bytes, self._layout.world)
        request = scatter_request(DTYPES[tensor.dtype], row_bytes, shape, rows, last=axis != 0)
        source = addressable(tensor.movedim(axis, 0))
        share = (rows[self._rank], *source.shape[1:])
        result = torch.empty(share, dtype=tensor.dtype, device=tensor.device)
        request.input, request.output = source.data_ptr(), result.data_ptr()
        return request, source, result

    def gather(self, tensor: torch.Tensor, dim: int, sizes: Sequence[int] | None) -> Prepared:
        """Return an all-gather, its result new. Raises ValueError or TypeError."""
        self._check_device(tensor)
        shape = tuple(tensor.shape)
        axis = self._axis(shape, dim)
        last = axis != 0
        extents = tuple(sizes) if sizes is not None else (shape[axis],) * self._layout.world
        self._check_sizes(extents, shape[axis], last=last)
        dtype = DTYPES[tensor.dtype]
        request = gather_request(dtype, tensor.itemsize, shape, extents, last=last)
        largest = max(request.bytes[: self._layout.world])
        if largest > self._layout.gather_bytes:
            limit = self._layout.gather_bytes
            raise ValueError(f"a shard of {largest} bytes does not fit: at most {limit}")
        whole = list(shape)
        whole[axis] = sum(extents)
        source = tensor.contiguous()
        result = torch.empty(whole, dtype=tensor.dtype, device=tensor.device)
        request.input, request.output = source.data_ptr(), result.data_ptr()
        return request, source, result

    def _limit(self, algorithm: Algorithm) -> int:
        layout = self._layout
        return layout.two_shot_bytes if algorithm is Algorithm.TWO_SHOT else layout.reduce_bytes

    def _axis(self, shape: tuple[int, ...], dim: int) -> int:
        if not shape or dim not in (0, -1, len(shape) - 1):
            raise ValueError(f"dim {dim} of {list(shape)}: wanted the first (0) or last (-1)")
        return 0 if dim == 0 else -1

    def _check_device(self, tensor: torch.Tensor) -> None:
        if tensor.device != self._device:
            raise TypeError(f"a tensor on {tensor.device}: wanted one on {self._device}")
        if tensor.dtype not in DTYPES:
            raise TypeError(f"{tensor.dtype} cannot be gathered")

    def _check_out(self, out: torch.Tensor, like: torch.Tensor) -> None:
        if out.shape != like.shape or out.dtype != like.dtype or out.device != like.device:
            raise ValueError(
                f"out is {out.dtype} {list(out.shape)} on {out.device}, "
                f"wanted {like.dtype} {list(like.shape)} on {like.device}"
            )

    def _check_sizes(self, extents: tuple[int, ...], own: int, *, last: bool) -> None:
        world = self._layout.world
        if len(extents) != world or extents[self._rank] != own or min(extents) < 0:
            raise ValueError(
                f"sizes {list(extents)}: wanted {world}, the one of rank {self._rank} {own}"
            )
        if not last and len(set(extents)) > 1:
            raise ValueError("unequal shards are gathered on the last dimension only")


def addressable(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor, or a copy where it is not contiguous on a 16-byte boundary.

    A copy, not a refusal: addresses differ between ranks, the route must not.
    """
    if tensor.is_contiguous() and tensor.data_ptr() % UNIT == 0:
        return tensor
    return torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device).copy_(tensor)


def can_take(out: torch.Tensor, source: torch.Tensor) -> bool:
    """Say whether kernels can write `out` while they read `source`: the same place, or apart."""
    if not out.is_contiguous() or out.data_ptr() % UNIT:
        return False
    apart = abs(out.data_ptr() - source.data_ptr())
    return apart == 0 or apart >= source.nbytes
