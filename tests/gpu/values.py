"""Values to sum, and the CPU kernel's sum of them: the oracle of every check of the kernels."""

import ctypes

import torch

from tetraspark.collectives import native
from tetraspark.collectives.library import proxy
from tetraspark.collectives.tensors import DTYPES


def raw(tensor: torch.Tensor) -> bytes:
    """Return the bytes of a tensor."""
    return bytes(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())


def values(seed: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Return CPU values with every kind of number in them but NaN."""
    generator = torch.Generator().manual_seed(seed)
    if not dtype.is_floating_point:
        return torch.randint(0, 100, shape, generator=generator).to(dtype)
    spread = torch.randn(shape, generator=generator)
    scale = torch.randint(-26, 12, shape, generator=generator)
    found = torch.ldexp(spread, scale)
    found = torch.where(torch.rand(shape, generator=generator) < 0.02, -0.0, found)
    return found.to(dtype)


def summed(inputs: list[torch.Tensor]) -> bytes:
    """Return what the CPU kernel makes of all ranks' inputs."""
    out = torch.empty_like(inputs[0])
    places = (ctypes.c_void_p * len(inputs))(*(one.data_ptr() for one in inputs))
    code = proxy().ts_reduce(out.data_ptr(), places, len(inputs), DTYPES[out.dtype], out.nbytes)
    assert code == native.DONE
    return raw(out)
