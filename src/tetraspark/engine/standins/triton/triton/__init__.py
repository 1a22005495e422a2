"""Stand-in for triton where no GPU exists: decorators return the function, the rest is inert.

`driver.active` raises as the real module does without a GPU, so probes see none.
"""

import importlib
from collections.abc import Iterator
from typing import Any, NoReturn

from tetraspark.engine.standins.inert import InertSubmodules

__version__ = "3.7.1"

CLASSES = [
    "tensor",
    "dtype",
    "Config",
    "JITFunction",
    "KernelInterface",
    "CompiledKernel",
    "Autotuner",
    "Heuristics",
]
ERRORS = ("OutOfResources", "CompilationError")


class Inert:
    """Takes any use that happens while modules load, and does nothing."""

    def __init__(self, *args: object, **kwargs: object) -> None: ...

    def __call__(self, *args: Any, **kwargs: object) -> Any:
        """Return a decorated function as it is; anything else gives another inert object."""
        decorates = len(args) == 1 and not kwargs and callable(args[0])
        return args[0] if decorates else Inert()

    def __getattr__(self, name: str) -> "Inert":
        if name.startswith("__"):
            raise AttributeError(name)
        return Inert()

    def __getitem__(self, key: object) -> "Inert":
        return self

    # Without these two, `"cpu" in backends` falls back to __getitem__ and never ends.
    def __contains__(self, key: object) -> bool:
        return False

    def __iter__(self) -> Iterator[object]:
        return iter(())

    def __bool__(self) -> bool:
        return False

    def __or__(self, other: object) -> "Inert":
        return self

    __ror__ = __or__

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        return (object,)


class constexpr:
    """A compile-time value; the engine computes sizes from `value` while its modules load."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Driver:
    """A driver that finds no GPU."""

    @property
    def active(self) -> NoReturn:
        """Raise what the real driver raises without a GPU."""
        raise RuntimeError("0 active drivers ([]). There should only be one.")


def cdiv(numerator: int, denominator: int) -> int:
    """Return the quotient rounded up; the engine sizes buffers with it at import time."""
    return -(-numerator // denominator)


def next_power_of_2(value: int) -> int:
    """Return the smallest power of two that is at least `value`."""
    return 1 << (max(value, 1) - 1).bit_length()


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name == "constexpr":
        return constexpr
    if name == "driver":
        return Driver()
    if name in CLASSES or name in ERRORS:
        base = Exception if name in ERRORS else object
        return type(name, (base,), {"__init__": lambda self, *args, **kwargs: None})
    if name in ("language", "runtime"):
        return importlib.import_module(f"{__name__}.{name}")
    return Inert()


def _submodule_getattr(name: str) -> Any:
    return Inert() if name in ("language", "runtime") else __getattr__(name)


InertSubmodules(__name__, _submodule_getattr).install()
