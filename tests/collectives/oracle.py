"""What a collective must return, computed without the collective."""

import torch


def shard(
    seed: int, rank: int, shape: tuple[int, ...], dtype: torch.dtype = torch.bfloat16
) -> torch.Tensor:
    """Return the input of one rank: the same in every process."""
    generator = torch.Generator().manual_seed(seed * 1009 + rank)
    values = torch.randn(shape, generator=generator) * 8
    return (values * 20).to(dtype) if not dtype.is_floating_point else values.to(dtype)


def reduced(shards: list[torch.Tensor]) -> torch.Tensor:
    """Return the fp32 sum in rank order, rounded once."""
    total = shards[0].float()
    for other in shards[1:]:
        total = total + other.float()
    return total.to(shards[0].dtype)


def raw(tensor: torch.Tensor) -> bytes:
    """Return the bytes of a tensor: -0 and 0 differ here, as they must."""
    return bytes(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
