"""The norm in plain torch, with every rounding and the order of every sum written out."""

import torch


def tree(values: torch.Tensor) -> torch.Tensor:
    """Sum the last dimension, a power of two, by halves: value i and value i + n / 2, again."""
    while values.shape[-1] > 1:
        half = values.shape[-1] // 2
        values = values[..., :half] + values[..., half:]
    return values[..., 0]


def sum_of_squares(x: torch.Tensor, threads: int) -> torch.Tensor:
    """Return the sum over the last dimension of x * x, fp32, in the order of the kernels.

    Thread t of a block adds up the pieces t, t + threads, ... of 8 values, in order; the 32 lanes
    of a warp are then summed as a tree, and the warps' sums as another.
    """
    rows, columns = x.shape
    pieces = -(-columns // (8 * threads)) * threads
    squares = torch.zeros(rows, pieces * 8, dtype=torch.float32, device=x.device)
    squares[:, :columns] = x * x
    each = squares.reshape(rows, -1, threads, 8).transpose(1, 2).reshape(rows, threads, -1)
    total = torch.zeros(rows, threads, dtype=torch.float32, device=x.device)
    for i in range(each.shape[-1]):
        total = total + each[..., i]
    warps = tree(total.reshape(rows, threads // 32, 32))
    padded = torch.zeros(rows, 32, dtype=torch.float32, device=x.device)
    padded[:, : threads // 32] = warps
    return tree(padded)


def reference_norm(
    reduced: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    epsilon: float,
    threads: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (normed, new residual) of bf16 rows [n, columns]; `reduced` is the bf16 sum."""
    x = reduced.float() + residual.float()
    # Divided by a tensor: torch turns a number into a multiplication by its inverse.
    columns = torch.full((1,), x.shape[-1], dtype=torch.float32, device=x.device)
    mean = sum_of_squares(x, threads) / columns
    scale = inverse_root(mean + epsilon)[:, None]
    return ((x * scale) * weight.float()).bfloat16(), x.bfloat16()


def inverse_root(value: torch.Tensor) -> torch.Tensor:
    """Return 1 / sqrt: the GPU's own instruction on a GPU, rounded once on a CPU."""
    return value.rsqrt() if value.is_cuda else (1.0 / value.double().sqrt()).float()
