"""Arguments of an all-reduce whose sum is added to a residual and normalized, checked."""

import torch

from tetraspark.collectives.cuda_state import Epilogue
from tetraspark.collectives.flags import UNIT

MAX_COLUMNS = 16384
"""What 512 threads keep of one row, in 4 pieces of 8 values each."""


def norm_columns(tensor: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor) -> int:
    """Return the columns of a row. Raises ValueError or TypeError for what cannot be normalized."""
    for name, one in (("tensor", tensor), ("residual", residual), ("weight", weight)):
        if one.dtype != torch.bfloat16:
            raise TypeError(f"{name} is {one.dtype}: wanted bfloat16")
        if one.device != tensor.device:
            raise TypeError(f"{name} is on {one.device}: wanted {tensor.device}")
    if tensor.dim() < 1 or residual.shape != tensor.shape:
        raise ValueError(f"residual is {list(residual.shape)}: wanted {list(tensor.shape)}")
    columns = tensor.shape[-1]
    if columns % 8 or not 0 < columns <= MAX_COLUMNS or weight.shape != (columns,):
        raise ValueError(
            f"rows of {columns} values, weight {list(weight.shape)}: wanted a multiple of 8 up to "
            f"{MAX_COLUMNS}, and a weight for each"
        )
    for name, one in (("residual", residual), ("weight", weight)):
        if not one.is_contiguous() or one.data_ptr() % UNIT:
            raise ValueError(f"{name} must be contiguous, on a {UNIT}-byte boundary")
    return columns


def epilogue(
    residual: torch.Tensor, residual_out: torch.Tensor, weight: torch.Tensor, epsilon: float
) -> Epilogue:
    """Return the arguments of kernels that normalize rows of `residual`'s last dimension."""
    return Epilogue(
        residual=residual.data_ptr(),
        residual_out=residual_out.data_ptr(),
        weight=weight.data_ptr(),
        columns=residual.shape[-1],
        epsilon=epsilon,
    )
