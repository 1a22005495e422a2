"""The few calls of the CUDA driver that torch does not offer: register, load, launch."""

import ctypes
from collections.abc import Sequence
from ctypes import Structure, byref, c_char_p, c_int, c_uint, c_uint64, c_void_p
from functools import cache
from typing import Generic, TypeVar

import torch

from tetraspark.collectives.cuda_error import CudaError

T = TypeVar("T", bound=Structure)

PORTABLE = 1
MAPPED = 2
"""CU_MEMHOSTREGISTER_PORTABLE and _DEVICEMAP; CU_MEMHOSTALLOC_* have the same values."""


@cache
def library() -> ctypes.CDLL:
    """Return libcuda. Raises CudaError where the machine has no NVIDIA driver."""
    try:
        found = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise CudaError(f"no NVIDIA driver: {error}") from error
    found.cuGetErrorString.argtypes = [c_int, ctypes.POINTER(c_char_p)]
    return found


def call(name: str, *arguments: object) -> None:
    """Call one function of the driver. Raises CudaError, with the driver's own words."""
    code = getattr(library(), name)(*arguments)
    if code:
        text = c_char_p()
        library().cuGetErrorString(code, byref(text))
        words = text.value.decode() if text.value else f"error {code}"
        raise CudaError(f"{name}: {words} ({code})")


def current_context() -> int:
    """Return the CUDA context of this thread, 0 where it has none."""
    context = c_void_p()
    call("cuCtxGetCurrent", byref(context))
    return context.value or 0


def ensure_context(context: int) -> None:
    """Give this thread a context if it has none: torch makes one only when it first needs it."""
    if not current_context():
        call("cuCtxSetCurrent", c_void_p(context))


def capability(device: torch.device) -> int:
    """Return the compute capability as 10 x major + minor."""
    major, minor = torch.cuda.get_device_capability(device)
    return major * 10 + minor


class MappedHost:
    """Host memory of this process that kernels read and write in place; `device` is its address."""

    def __init__(self, address: int, nbytes: int) -> None:
        self._address = address
        call("cuMemHostRegister_v2", c_void_p(address), ctypes.c_size_t(nbytes), PORTABLE | MAPPED)
        self.device = _device_address(address)

    def close(self) -> None:
        """Unpin. No kernel may still use it."""
        call("cuMemHostUnregister", c_void_p(self._address))


class PinnedStructure(Generic[T]):
    """One zeroed structure in pinned memory: `value` here, `device` for kernels."""

    def __init__(self, kind: type[T]) -> None:
        self._pointer = c_void_p()
        size = ctypes.sizeof(kind)
        call("cuMemHostAlloc", byref(self._pointer), ctypes.c_size_t(size), PORTABLE | MAPPED)
        address = self._pointer.value or 0
        ctypes.memset(address, 0, size)
        self.value: T = kind.from_address(address)
        self.device = _device_address(address)

    def close(self) -> None:
        """Free it. `value` must not be used again."""
        call("cuMemFreeHost", self._pointer)


def _device_address(address: int) -> int:
    device = c_uint64()
    call("cuMemHostGetDevicePointer_v2", byref(device), c_void_p(address), 0)
    return int(device.value)


class Module:
    """Loaded kernels, by name, on the current device."""

    def __init__(self, image: bytes, names: Sequence[str]) -> None:
        self._handle = c_void_p()
        self._context = current_context()
        call("cuModuleLoadData", byref(self._handle), image)
        self._kernels: dict[str, c_void_p] = {}
        for name in names:
            kernel = c_void_p()
            call("cuModuleGetFunction", byref(kernel), self._handle, name.encode())
            # A kernel that is loaded at its first launch waits for all that run, so for peers.
            attribute = c_int()
            call("cuFuncGetAttribute", byref(attribute), 4, kernel)
            self._kernels[name] = kernel

    def launch(
        self,
        name: str,
        grid: tuple[int, int],
        threads: int,
        stream: int,
        arguments: Sequence[Structure],
    ) -> None:
        """Enqueue one kernel; its arguments are copied before this returns. Raises CudaError."""
        ensure_context(self._context)
        places = (c_void_p * len(arguments))(*(ctypes.addressof(one) for one in arguments))
        sizes = (c_uint(grid[0]), c_uint(grid[1]), c_uint(1), c_uint(threads), c_uint(1), c_uint(1))
        call(
            "cuLaunchKernel",
            self._kernels[name],
            *sizes,
            c_uint(0),
            c_void_p(stream),
            places,
            c_void_p(None),
        )

    def close(self) -> None:
        """Unload. No kernel of it may still run, no graph of it be replayed."""
        ensure_context(self._context)
        call("cuModuleUnload", self._handle)
