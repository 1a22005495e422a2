"""A built library: loaded, its layout numbers compared, its functions declared."""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from ctypes import c_uint32
from pathlib import Path

from tetraspark.collectives.failure import BuildError

Signatures = Mapping[str, tuple[object, list[object]]]
"""Function -> (type of its result, types of its arguments)."""


def bind(
    path: Path, abi: str, wanted: Sequence[int], signatures: Signatures, fix: str
) -> ctypes.CDLL:
    """Load a library whose function `abi` must tell the numbers `wanted`.

    `fix` is for a library that cannot be loaded. Raises BuildError.
    """
    try:
        library = ctypes.CDLL(str(path), use_errno=True)
        numbers = getattr(library, abi)
    except (OSError, AttributeError) as error:
        raise BuildError(f"{path} cannot be loaded: {error}; {fix}") from error
    numbers.restype = c_uint32
    seen = (c_uint32 * 64)()
    count = numbers(seen, 64)
    if list(seen[:count]) != list(wanted):
        raise BuildError(f"{path} has layout numbers {seen[:count]}, wanted {wanted}; remove it")
    for name, (result, arguments) in signatures.items():
        function: Callable[..., object] = getattr(library, name)
        function.restype = result  # type: ignore[attr-defined]  # a ctypes function pointer
        function.argtypes = arguments  # type: ignore[attr-defined]  # as above
    return library
