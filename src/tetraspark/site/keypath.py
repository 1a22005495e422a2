"""A key of a TOML document as a path, and the dotted text people read."""

import json
import re

KeyPath = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def dotted(path: KeyPath) -> str:
    """Write `("nodes", 0, "name")` as `nodes[0].name`; keys that need quotes get them."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
            continue
        name = part if _BARE.fullmatch(part) else json.dumps(part, ensure_ascii=False)
        text += f".{name}" if text else name
    return text
