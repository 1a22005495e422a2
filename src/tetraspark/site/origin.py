"""Where a value of a site came from."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Origin:
    """`where` is `sites/local.toml:12`, `default`, or `derived from engine.tp`."""

    kind: Literal["file", "default", "derived"]
    where: str


DEFAULT = Origin("default", "default")


def derived(key: str) -> Origin:
    """Return the origin of a value computed from another key."""
    return Origin("derived", f"derived from {key}")
