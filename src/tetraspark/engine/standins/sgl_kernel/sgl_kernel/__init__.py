"""Stand-in for sgl_kernel on a CPU without its build: any name imports, calling one raises.

Only `mamba` exists as a submodule: for the others the engine has fallbacks of its own, which a
fake submodule would hide.
"""

from collections.abc import Callable
from typing import NoReturn

__version__ = "0.4.10"


def __getattr__(name: str) -> Callable[..., NoReturn]:
    if name.startswith("__"):
        raise AttributeError(name)

    def absent_kernel(*args: object, **kwargs: object) -> NoReturn:
        raise NotImplementedError(f"sgl_kernel.{name}: a stand-in; this machine has no kernel")

    return absent_kernel
