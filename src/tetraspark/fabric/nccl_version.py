"""Versions of NCCL: what an image has, and since when NCCL chooses devices by subnet."""

import re
from collections.abc import Mapping
from typing import Any

from tetraspark.fabric.nccl_log import read_nccl
from tetraspark.images.manifest import load_manifest

PACKAGE = "nvidia-nccl-cu13"
SUBNET_AWARE = (2, 30, 7)
"""The first version that knows NCCL_IB_SUBNET_AWARE_ROUTING; older ones ignore it silently."""
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


def version_in_receipt(receipt: Mapping[str, Any]) -> str | None:
    """Return the version in the receipt that an image's build wrote; None where it has none."""
    packages = receipt.get("packages")
    found = packages.get(PACKAGE) if isinstance(packages, Mapping) else None
    return found if isinstance(found, str) and _VERSION.match(found) else None


def version_in_log(text: str) -> str | None:
    """Return the version in a log: NCCL's own line, or SGLang's."""
    return read_nccl(text.splitlines()).version


def pinned_version(recipe: str) -> str | None:
    """Return the version that a recipe installs; None for one that takes its base image's."""
    wheels = load_manifest().of(recipe).wheel
    return next((wheel.version for wheel in wheels if wheel.name == PACKAGE), None)
