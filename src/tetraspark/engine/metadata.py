"""What a distribution says of itself: its METADATA, or the pyproject.toml of a checkout.

Its words come from files that nobody has vouched for, so what is shown goes through `printable`.
"""

import re
import tomllib
from email.message import Message
from email.parser import HeaderParser

LONGEST = 200


def printable(text: str, longest: int = LONGEST) -> str:
    """Return text with every control character, line end and surrogate as an escape, cut short."""
    cut = text if len(text) <= longest else f"{text[:longest]}…"
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in cut
    )


def normalised(name: str) -> str:
    """Return a package's name as the package index compares names."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def headers(metadata: str) -> Message:
    """Return the headers of a METADATA."""
    return HeaderParser().parsestr(metadata)


def named(metadata: str) -> str:
    """Return the normalised name in a METADATA, "" without one."""
    return normalised(str(headers(metadata).get("Name", "")))


def project_metadata(text: str, package: str) -> str | None:
    """Return what a package's pyproject.toml requires, in the words of METADATA.

    None for another package's, and for one that says nothing of it.
    """
    try:
        table = tomllib.loads(text).get("project", {})
        if normalised(table.get("name", package)) != package:
            return None
        # An entry of several lines would add headers of its own.
        lines = [f"Requires-Dist: {' '.join(entry.split())}" for entry in table["dependencies"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return "\n".join(lines)
