"""Stand-in for torchvision in a text-only line: every submodule and class imports, all inert."""

from enum import Enum

from tetraspark.engine.standins.inert import InertSubmodules

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


InertSubmodules(__name__, __getattr__).install()
