"""From tensors to operations: what fits, and what is sent and filled."""

from collections.abc import Sequence

import torch

from tetraspark.collectives import native
from tetraspark.collectives.flags import UNIT
from tetraspark.collectives.opening import Link
from tetraspark.collectives.pending import Pending
from tetraspark.collectives.requests import gather_request, reduce_request
from tetraspark.collectives.tensors import check_out, dtype_of, reducible

REMEMBERED_SHAPES = 4096


class Calls:
    """Prepares the operations of one group; sends nothing."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._rank = link.rank
        self._world = link.layout.world
        self._requests: dict[object, native.Request] = {}

    def fits(self, nbytes: int, dtype: torch.dtype) -> bool:
        """Say whether an all-reduce of this size is taken."""
        limit = self._link.layout.reduce_bytes
        return reducible(dtype) and nbytes % UNIT == 0 and 0 < nbytes <= limit

    def fits_gather(self, nbytes: int) -> bool:
        """Say whether shards of at most `nbytes` are gathered."""
        return 0 <= nbytes <= self._link.layout.gather_bytes

    def reduce(
        self, tensor: torch.Tensor, out: torch.Tensor | None
    ) -> tuple[Pending, torch.Tensor, torch.Tensor]:
        """Return the operation, the contiguous tensor it fills, and the caller's target."""
        request = self._reduce_request(tensor)
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
        if not shape or dim not in (0, -1, len(shape) - 1):
            raise ValueError(f"dim {dim} of {list(shape)}: wanted the first (0) or last (-1)")
        last = dim != 0
        axis = -1 if last else 0
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

    def _reduce_request(self, tensor: torch.Tensor) -> native.Request:
        key = (tensor.dtype, tensor.shape, tensor.device.type)
        request = self._requests.get(key)
        if request is not None:
            return request
        dtype, nbytes = dtype_of(tensor), tensor.nbytes
        if not self.fits(nbytes, tensor.dtype):
            raise ValueError(
                f"{nbytes} bytes of {tensor.dtype} do not fit: wanted bf16, fp16 or fp32, a "
                f"multiple of 16 bytes, at most {self._link.layout.reduce_bytes}"
            )
        if len(self._requests) >= REMEMBERED_SHAPES:
            self._requests.clear()
        request = reduce_request(self._world, dtype, tensor.shape, nbytes)
        return self._requests.setdefault(key, request)

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
