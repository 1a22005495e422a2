"""Submodules of a stand-in: any of them imports, and what they hold is up to the stand-in."""

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any


class InertSubmodules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers `import PACKAGE.anything` with a module whose names come from `attribute`."""

    def __init__(self, package: str, attribute: Callable[[str], Any]) -> None:
        self._prefix = package + "."
        self._attribute = attribute

    def install(self) -> None:
        """Put this before the finders that would look for files."""
        sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Claim the package's submodules and nothing else."""
        if not name.startswith(self._prefix):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Return an empty module that asks `attribute` for every name."""
        module = types.ModuleType(spec.name)
        module.__dict__["__getattr__"] = self._attribute
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to run."""
