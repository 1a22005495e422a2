"""The kernels compile, for GPUs with NVRTC and as far as a host compiler can tell."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.collectives.cuda_host import find_cxx
from tetraspark.collectives import cuda_compiler
from tetraspark.collectives.cuda_compiler import compile_source, find_libraries, target
from tetraspark.collectives.cuda_error import CudaError
from tetraspark.collectives.cuda_source import (
    KERNELS,
    PROTOCOL,
    PTX,
    Shape,
    constants,
    kernel_names,
    kernel_source,
)

HOST = """
#define __CUDACC__
#define __device__
#define __forceinline__ inline
#define __global__
#define __shared__ static
#define __launch_bounds__(x)
#define __grid_constant__
#define asm __extension__ asm
struct three { unsigned x, y, z; };
extern three threadIdx, blockIdx, gridDim;
void __syncthreads();
void __syncwarp();
unsigned __shfl_sync(unsigned, unsigned, int);
unsigned long long __shfl_sync(unsigned, unsigned long long, int);
bool __any_sync(unsigned, bool);
unsigned __ballot_sync(unsigned, bool);
int __ffs(unsigned);
unsigned atomicCAS(unsigned *, unsigned, unsigned);
float __fadd_rn(float, float);
float __uint_as_float(unsigned);
unsigned __float_as_uint(float);
"""
"""Enough of CUDA for a host compiler to check the types and names of the kernels."""


@pytest.mark.parametrize(("world", "capability"), [(2, 90), (4, 121)])
def test_the_kernels_compile_for_an_h200_and_a_gb10(world: int, capability: int) -> None:
    made = compile_source(kernel_source(Shape.usual(world)), capability)
    assert made[:4] == b"\x7fELF"
    assert [name for name in kernel_names() if name.encode() not in made] == []


def test_a_host_compiler_accepts_the_kernels(tmp_path: Path) -> None:
    file = tmp_path / "kernels.cpp"
    file.write_text(HOST + kernel_source(Shape.usual(4)))
    done = subprocess.run(
        [find_cxx(), "-std=c++17", "-fsyntax-only", str(file)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_every_kernel_is_in_the_source() -> None:
    assert set(re.findall(r"^TS_KERNEL\((\w+),", KERNELS.read_text(), re.M)) == set(kernel_names())


def test_every_number_comes_from_the_layout() -> None:
    text = "".join(part.read_text() for part in (PROTOCOL, PTX, KERNELS))
    own = set(re.findall(r"#define (TS_\w+)", text)) | {"TS_WORLD", "TS_THREADS", "TS_UNROLL"}
    used = set(re.findall(r"\bTS_[A-Z0-9_]+\b", text)) - own
    assert used - {"TS_KERNEL"} <= set(constants())


def test_a_wrong_size_stops_the_build(tmp_path: Path) -> None:
    source = kernel_source(Shape.usual(2))
    size = constants()["TS_SIZEOF_REQUEST"]
    file = tmp_path / "kernels.cpp"
    file.write_text(
        HOST + source.replace(f"TS_SIZEOF_REQUEST {size}u", f"TS_SIZEOF_REQUEST {size + 8}u")
    )
    done = subprocess.run(
        [find_cxx(), "-std=c++17", "-fsyntax-only", str(file)], capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "ts_request differs from the proxy's" in done.stderr


@pytest.mark.parametrize(
    ("capability", "known", "wanted"),
    [
        (90, [75, 80, 90, 100], "sm_90"),
        (121, [90, 120, 121], "sm_121"),
        (121, [90, 100, 120], "compute_120"),
    ],
)
def test_the_target_is_the_gpu_or_the_newest_older_one(
    capability: int, known: list[int], wanted: str
) -> None:
    assert target(capability, known) == wanted


@pytest.mark.parametrize(("capability", "known"), [(61, [61, 90]), (75, [80, 90])])
def test_a_gpu_too_old_is_refused(capability: int, known: list[int]) -> None:
    with pytest.raises(CudaError, match="capability"):
        target(capability, known)


def test_installed_libraries_come_first_and_newest_first(tmp_path: Path) -> None:
    for name in ("cu13/lib/libnvrtc.so.13", "cuda_nvrtc/lib/libnvrtc.so.12"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    found = find_libraries([tmp_path])
    assert [Path(name).name for name in found[:2]] == ["libnvrtc.so.13", "libnvrtc.so.12"]
    assert found[2:] == list(cuda_compiler.NAMES)


def test_a_missing_compiler_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_compiler, "load_library", lambda: None)
    with pytest.raises(CudaError, match="pip install nvidia-cuda-nvrtc"):
        compile_source("", 90)


@pytest.mark.parametrize(
    ("world", "threads", "unroll"), [(1, 512, 4), (9, 512, 4), (2, 96, 4), (2, 500, 4), (2, 512, 0)]
)
def test_a_shape_that_cannot_work_is_refused(world: int, threads: int, unroll: int) -> None:
    with pytest.raises(ValueError, match=r"wanted|outside"):
        Shape(world, threads, unroll)
