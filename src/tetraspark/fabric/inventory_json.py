"""Reading JSON that somebody else's program wrote: what is not as expected is left out."""

import json
import re
from collections.abc import Iterator
from typing import Any

from tetraspark.fleet.facts import Facts

MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")


def answer(facts: Facts, name: str) -> str | None:
    """Return what a command of the probe printed, or None when it failed or was not asked."""
    said = facts.commands.get(name)
    return said.stdout if said is not None and said.rc == 0 else None


def parsed(text: str | None) -> Any:
    """Return the value of a JSON text, or None for a text that is none."""
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return None


def tables(value: Any) -> Iterator[dict[str, Any]]:
    """Return the objects in a list, or the one object itself."""
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, dict):
            yield one


def table(value: Any) -> dict[str, Any]:
    """Return an object, or an empty one."""
    return value if isinstance(value, dict) else {}


def word(value: Any) -> str:
    """Return a text, or ""."""
    return value if isinstance(value, str) else ""


def whole(value: Any) -> int | None:
    """Return a whole number, also of a text of decimal digits, or None."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    text = word(value).strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 24 else None


def mac(value: Any) -> str:
    """Return an Ethernet address in lower case, or ""."""
    text = word(value).lower()
    return text if MAC.fullmatch(text) else ""
