"""What `ethtool` prints: names and values, one a line."""

from tetraspark.fabric.inventory_json import whole

OFFLOAD = "hw-tc-offload"


def offload(text: str | None) -> str | None:
    """Return `on`, `off`, `off [fixed]` and the like from `ethtool -k`."""
    value = _lines(text).get(OFFLOAD, "")
    return value if value.split(" ")[0] in ("on", "off") else None


def statistics(text: str | None) -> dict[str, int]:
    """Return the whole numbers of `ethtool -S`, by name."""
    found = {name: whole(value) for name, value in _lines(text).items()}
    return {name: value for name, value in found.items() if value is not None}


def _lines(text: str | None) -> dict[str, str]:
    found = {}
    for line in (text or "").splitlines():
        name, colon, value = line.strip().partition(":")
        if colon:
            found[name] = value.strip()
    return found
