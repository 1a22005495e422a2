"""What a server says, without the key that it was sent."""

from typing import Any

SHORTEST = 6
"""A shorter key is a word such as `EMPTY`, and taking it out would garble the rest."""
HIDDEN = "(the API key)"


def without_key(text: str, key: str | None) -> str:
    """Return a text of the server's in which the key does not stand."""
    return text if key is None or len(key) < SHORTEST else text.replace(key, HIDDEN)


def report_without_key(value: Any, key: str | None) -> Any:
    """Return plain values with `without_key` done to every text in them, names included."""
    if isinstance(value, str):
        return without_key(value, key)
    if isinstance(value, dict):
        return {
            report_without_key(name, key): report_without_key(one, key)
            for name, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [report_without_key(one, key) for one in value]
    return value
