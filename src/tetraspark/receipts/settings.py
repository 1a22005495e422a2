"""The settings of a plan that a receipt recorded, without what is looked up anew at each start."""

from collections.abc import Mapping
from typing import Any

from tetraspark.engine.api_key import KEY_FILE

LOOKED_UP = (
    "free on this machine",
    "cores of this machine",
    "not installed here",
    "nodes[0].host",
    "resolved on",
    "NCCL profile",
)
"""How the origins of values begin that depend on the machine at the moment of a start."""


def planned(plan: Mapping[str, Any], derived_only: bool = False) -> dict[str, str]:
    """Return each setting of a plan, as JSON, as `NAME of rank R` (or NAME) and its value."""
    found: dict[str, str] = {}
    for one in plan["settings"]:
        origin = one["origin"]
        if one["name"] == KEY_FILE:
            # The site names the key file; in a unit it is the unit's copy.
            continue
        if origin["where"].startswith(LOOKED_UP) or (derived_only and origin["kind"] == "file"):
            continue
        name = one["name"] if one["rank"] is None else f"{one['name']} of rank {one['rank']}"
        value = "given" if one["value"] is None else str(one["value"])
        # A word of `extra_args` may be given more than once.
        found[name] = f"{found[name]} {value}" if name in found else value
    return found
