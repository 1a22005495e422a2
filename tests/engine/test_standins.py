import subprocess
import sys

import pytest

from tetraspark.engine.standins import MODULES, path_of


def run(module: str, code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(path_of(module))},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("module", MODULES)
def test_a_stand_in_says_what_it_is(module: str) -> None:
    result = run(module, f"import {module}; print({module}.__doc__)")
    assert result.stdout.startswith(f"Stand-in for {module}"), result.stderr


def test_a_kernel_that_is_called_raises() -> None:
    result = run("sgl_kernel", "from sgl_kernel import topk; topk(1)")
    assert "NotImplementedError: sgl_kernel.topk: a stand-in" in result.stderr


def test_kernel_submodules_with_engine_fallbacks_are_absent() -> None:
    assert "ModuleNotFoundError" in run("sgl_kernel", "import sgl_kernel.scalar_type").stderr


def test_triton_decorators_return_the_function_and_membership_ends() -> None:
    code = (
        "import triton, triton.language as tl\n"
        "@triton.jit\n"
        "def kernel(x: tl.constexpr): return x\n"
        "@triton.autotune(configs=[], key=[])\n"
        "def tuned(x): return x\n"
        "assert kernel(3) == 3 and tuned(4) == 4\n"
        "assert 'cpu' not in triton.backends.backends\n"
        "assert triton.cdiv(7, 2) == 4 and triton.next_power_of_2(5) == 8\n"
    )
    result = run("triton", code)
    assert result.returncode == 0, result.stderr


def test_triton_finds_no_gpu() -> None:
    code = "from triton.runtime import driver; driver.active"
    assert "0 active drivers" in run("triton", code).stderr


def test_an_unknown_module_has_no_stand_in() -> None:
    with pytest.raises(ValueError, match="no stand-in for 'numpy'"):
        path_of("numpy")
