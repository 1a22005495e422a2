"""Stand-in for torchvision in a text-only line: every submodule and class imports, all inert."""

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Sequence
from enum import Enum

__version__ = "0.28.0"


class InterpolationMode(Enum):
    """The members that image processors name at import time."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


def __getattr__(name: str) -> type:
    if name.startswith("__"):
        raise AttributeError(name)
    return InterpolationMode if name == "InterpolationMode" else type(name, (), {})


class _InertSubmodules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers `import torchvision.anything` with a module whose names are inert classes."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not name.startswith(__name__ + "."):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = types.ModuleType(spec.name)
        module.__dict__["__getattr__"] = __getattr__
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to run."""


sys.meta_path.insert(0, _InertSubmodules())
