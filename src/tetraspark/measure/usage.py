"""The tokens that a server says it counted, believed only where they can be a count."""

from dataclasses import dataclass
from typing import Any

MOST = 10**9
"""No request has so many tokens."""


@dataclass(frozen=True)
class Usage:
    """Tokens of one request, None where the server tells none."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None


def usage_of(told: Any) -> Usage:
    """Return the `usage` of an event. Raises ValueError that names what is no count."""
    if not isinstance(told, dict):
        raise ValueError(f"usage is {_short(told)}")
    details = told.get("prompt_tokens_details")
    if details is not None and not isinstance(details, dict):
        raise ValueError(f"usage.prompt_tokens_details is {_short(details)}")
    return Usage(
        prompt_tokens=_count(told, "prompt_tokens"),
        completion_tokens=_count(told, "completion_tokens"),
        cached_tokens=_count(details or {}, "cached_tokens"),
    )


def _count(told: dict[str, Any], key: str) -> int | None:
    value = told.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST:
        raise ValueError(f"usage.{key} is {_short(value)}")
    return value


def _short(value: object) -> str:
    # Python refuses to write out integers of thousands of digits.
    large = isinstance(value, int) and abs(value) > MOST
    return f"beyond {MOST}" if large else repr(value)[:60]
