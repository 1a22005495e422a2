"""Parameters and reloads of PCI functions, from devlink: runs inside the node."""

from __future__ import annotations

import json
from typing import Any

from tetraspark.ring.inside.say import Refusal, must, problem


def parameters() -> dict[str, Any]:
    """Return the parameters of every function, as devlink lists them by `pci/ADDRESS`."""
    found: dict[str, Any] = _asked(["devlink", "-j", "dev", "param", "show"]).get("param", {})
    return found


def value_of(found: dict[str, Any], pci: str, name: str, cmode: str) -> Any:
    """Return the value of a function's parameter in a mode, or None."""
    for one in found.get(f"pci/{pci}", []):
        for value in one.get("values", []) if one["name"] == name else []:
            if value.get("cmode") == cmode:
                return value.get("value")
    return None


def reloads() -> dict[str, tuple[int, bool]]:
    """Return how often each function was re-initialised in this boot, and if the last failed."""
    found = _asked(["devlink", "-s", "-j", "dev", "show"]).get("dev", {})
    return {name.removeprefix("pci/"): _reloads(one) for name, one in found.items()}


def _reloads(one: dict[str, Any]) -> tuple[int, bool]:
    stats = one.get("stats", {}).get("reload", {}).get("driver_reinit", {})
    return int(stats.get("unspecified", 0)), bool(one.get("reload_failed", False))


def _asked(argv: list[str]) -> dict[str, Any]:
    text = must(argv)
    try:
        found: dict[str, Any] = json.loads(text or "{}")
    except ValueError as error:
        seen = f"`{' '.join(argv)}` printed no JSON: {error}"
        raise Refusal(problem("devlink", seen, "JSON", "devlink -V")) from error
    return found
