"""CUDA C++ to machine code at run time, through libnvrtc; no nvcc and no headers are needed."""

import ctypes
import importlib.util
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_void_p
from functools import cache
from pathlib import Path

from tetraspark.collectives.cuda_error import CudaError

# Nothing here may change a sum: no contraction, no flush to zero.
FLAGS = ("--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true", "-default-device")
NAMES = ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")


def find_libraries(roots: list[Path] | None = None) -> list[str]:
    """Return the libnvrtc files of installed packages, newest first, then the system's names."""
    if roots is None:
        spec = importlib.util.find_spec("nvidia")
        roots = [Path(root) for root in (spec.submodule_search_locations or [])] if spec else []
    found = [path for root in roots for path in root.glob("*/lib/libnvrtc.so.*")]
    return [str(path) for path in sorted(found, key=lambda path: path.name, reverse=True)] + [
        *NAMES
    ]


@cache
def load_library() -> ctypes.CDLL | None:
    """Return libnvrtc, or None where none can be loaded."""
    for name in find_libraries():
        try:
            # It opens its built-in headers by name alone: have them loaded from the same folder.
            for part in Path(name).parent.glob("libnvrtc-builtins.so.*"):
                ctypes.CDLL(str(part), mode=ctypes.RTLD_GLOBAL)
            library = ctypes.CDLL(name)
        except OSError:
            continue
        library.nvrtcGetErrorString.restype = c_char_p
        library.nvrtcCreateProgram.argtypes = [
            POINTER(c_void_p), c_char_p, c_char_p, c_int, c_void_p, c_void_p,
        ]  # fmt: skip
        return library
    return None


def library() -> ctypes.CDLL:
    """Return libnvrtc. Raises CudaError, with what to install, where none can be loaded."""
    found = load_library()
    if found is None:
        raise CudaError(
            f"libnvrtc not found (tried {', '.join(find_libraries())}); "
            "install it: pip install nvidia-cuda-nvrtc"
        )
    return found


def _check(nvrtc: ctypes.CDLL, code: int, what: str, log: str = "") -> None:
    if code:
        text = nvrtc.nvrtcGetErrorString(code).decode()
        raise CudaError(f"{what}: {text}{': ' + log if log else ''}")


def version(nvrtc: ctypes.CDLL) -> str:
    """Return the compiler's version, "13.0"."""
    major, minor = c_int(), c_int()
    _check(nvrtc, nvrtc.nvrtcVersion(byref(major), byref(minor)), "nvrtcVersion")
    return f"{major.value}.{minor.value}"


def supported(nvrtc: ctypes.CDLL) -> list[int]:
    """Return the compute capabilities this compiler knows, as 10 x major + minor."""
    count = c_int()
    _check(nvrtc, nvrtc.nvrtcGetNumSupportedArchs(byref(count)), "nvrtcGetNumSupportedArchs")
    values = (c_int * count.value)()
    _check(nvrtc, nvrtc.nvrtcGetSupportedArchs(values), "nvrtcGetSupportedArchs")
    return list(values)


def target(capability: int, known: list[int]) -> str:
    """Return the architecture to compile for.

    Machine code for the GPU itself if the compiler knows it, else the newest older virtual one,
    which the driver finishes. Raises CudaError below 7.0, whose memory model lacks scopes.
    """
    if capability < 70:
        raise CudaError(f"compute capability {capability / 10}: wanted at least 7.0")
    if capability in known:
        return f"sm_{capability}"
    older = [one for one in known if one < capability]
    if not older:
        raise CudaError(f"libnvrtc knows {known}, none is for capability {capability / 10}")
    return f"compute_{max(older)}"


def compile_source(source: str, capability: int) -> bytes:
    """Return a cubin, or PTX where the compiler is older than the GPU. Raises CudaError."""
    nvrtc = library()
    architecture = target(capability, supported(nvrtc))
    program = c_void_p()
    code = nvrtc.nvrtcCreateProgram(
        byref(program), source.encode(), b"tetraspark_collectives.cu", 0, None, None
    )
    _check(nvrtc, code, "nvrtcCreateProgram")
    try:
        flags = [flag.encode() for flag in (*FLAGS, f"--gpu-architecture={architecture}")]
        array = (c_char_p * len(flags))(*flags)
        code = nvrtc.nvrtcCompileProgram(program, len(flags), array)
        _check(nvrtc, code, "nvrtcCompileProgram", _log(nvrtc, program) if code else "")
        return _image(nvrtc, program, "CUBIN" if architecture.startswith("sm_") else "PTX")
    finally:
        nvrtc.nvrtcDestroyProgram(byref(program))


def _log(nvrtc: ctypes.CDLL, program: c_void_p) -> str:
    size = c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, byref(size))
    text = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, text)
    return text.value.decode(errors="replace").strip()


def _image(nvrtc: ctypes.CDLL, program: c_void_p, kind: str) -> bytes:
    size = c_size_t()
    get_size = getattr(nvrtc, f"nvrtcGet{kind}Size")
    _check(nvrtc, get_size(program, byref(size)), f"nvrtcGet{kind}Size")
    image = ctypes.create_string_buffer(size.value)
    _check(nvrtc, getattr(nvrtc, f"nvrtcGet{kind}")(program, image), f"nvrtcGet{kind}")
    return image.raw
