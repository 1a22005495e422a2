"""Versions of NCCL: what an image has, and since when NCCL chooses devices by subnet."""

import re

from tetraspark.errors import Problem, UsageError
from tetraspark.images.manifest import load_manifest
from tetraspark.site.load import LoadedSite

PACKAGE = "nvidia-nccl-cu13"
SUBNET_AWARE = (2, 30, 7)
"""The first version that knows NCCL_IB_SUBNET_AWARE_ROUTING; older ones ignore it silently."""
KEY = "fabric.nccl.version"
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")


def parse_version(text: str) -> tuple[int, int, int]:
    """Read `2.30.7`, with or without `+cuda13.0` or `-1`. Raises ValueError for another text."""
    found = _VERSION.match(text)
    if found is None:
        raise ValueError(f"not a version of NCCL: {text!r}")
    return int(found[1]), int(found[2]), int(found[3])


def knows_subnets(version: str | None) -> bool | None:
    """Say whether a version chooses devices by subnet; None where the version is not known."""
    return None if version is None else parse_version(version) >= SUBNET_AWARE


def pinned_version(recipe: str) -> str | None:
    """Return the version that a recipe installs; None for one that takes its base image's."""
    wheels = load_manifest().of(recipe).wheel
    return next((wheel.version for wheel in wheels if wheel.name == PACKAGE), None)


def image_version(loaded: LoadedSite) -> str | None:
    """Return the version in a site's image: what its recipe installs, else what the site says.

    None where neither tells. Raises UsageError where the two contradict each other.
    """
    image, fabric = loaded.site.image, loaded.site.fabric
    pinned = pinned_version(image.recipe) if image and image.dockerfile is None else None
    stated = fabric.nccl.version if fabric else None
    if image and pinned and stated and pinned != stated:
        seen = f"`{KEY}` is {stated!r}"
        wanted = f"{pinned}, which recipe {image.recipe!r} installs"
        fix = f"remove {KEY}: the recipe tells it"
        raise UsageError(Problem(loaded.origin(KEY).where, seen, wanted, fix))
    return pinned or stated
