"""Torch tensors as the protocol sees them: a dtype, a shape, an address."""

import torch

from tetraspark.collectives.flags import REDUCIBLE, Dtype

DTYPES = {
    torch.bfloat16: Dtype.BF16,
    torch.float16: Dtype.FP16,
    torch.float32: Dtype.FP32,
    torch.float64: Dtype.FP64,
    torch.int8: Dtype.INT8,
    torch.uint8: Dtype.UINT8,
    torch.int16: Dtype.INT16,
    torch.int32: Dtype.INT32,
    torch.int64: Dtype.INT64,
    torch.bool: Dtype.BOOL,
    torch.float8_e4m3fn: Dtype.FP8_E4M3,
    torch.float8_e5m2: Dtype.FP8_E5M2,
}


def dtype_of(tensor: torch.Tensor) -> Dtype:
    """Return the wire dtype. Raises TypeError for one that has none, or for another device."""
    if tensor.device.type != "cpu":
        raise TypeError(f"a tensor on {tensor.device}: wanted one on the CPU")
    if tensor.dtype not in DTYPES:
        raise TypeError(f"{tensor.dtype} cannot be gathered")
    return DTYPES[tensor.dtype]


def reducible(dtype: torch.dtype) -> bool:
    """Say whether a dtype can be summed: bf16, fp16, fp32."""
    return DTYPES.get(dtype) in REDUCIBLE


def check_out(out: torch.Tensor, shape: tuple[int, ...], like: torch.Tensor) -> None:
    """Raise ValueError unless `out` can take a result of `shape` and the dtype of `like`."""
    if tuple(out.shape) != shape or out.dtype != like.dtype or out.device.type != "cpu":
        raise ValueError(
            f"out is {out.dtype} {list(out.shape)} on {out.device}, "
            f"wanted {like.dtype} {list(shape)} on the CPU"
        )
