"""Stand-ins for modules that the engine imports and a CPU-only machine cannot install.

Each folder here holds one top-level package and is put on PYTHONPATH by the local line only, and
only when the real module is absent. They let imports through; nothing in them computes.
"""

from pathlib import Path

MODULES = ("triton", "torchvision", "sgl_kernel")


def path_of(module: str) -> Path:
    """Return the folder to put on PYTHONPATH so that `import module` finds its stand-in."""
    if module not in MODULES:
        raise ValueError(f"no stand-in for {module!r}; there are: {', '.join(MODULES)}")
    return Path(__file__).parent / module
