"""Names of container images, as docker's reference grammar has them.

`[HOST[:PORT]/]PATH[:TAG][@sha256:64 HEX]`; https://pkg.go.dev/github.com/distribution/reference.
"""

import re

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_REGISTRY = rf"{_LABEL}(?:\.{_LABEL})*(?::[0-9]{{1,5}})?"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_NAME = rf"(?P<name>(?:{_REGISTRY}/)?{_PART}(?:/{_PART})*)"
_TAG = r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
_TAGGED = re.compile(_NAME + _TAG)
_PINNED = re.compile(_NAME + _TAG + r"@sha256:[0-9a-f]{64}")
_LONGEST_NAME = 255


def is_tagged(text: str) -> bool:
    """Say whether a text names an image, with or without a tag and without a digest."""
    return _fits(_TAGGED, text)


def is_pinned(text: str) -> bool:
    """Say whether a text names an image by its sha256 digest."""
    return _fits(_PINNED, text)


def _fits(pattern: re.Pattern[str], text: str) -> bool:
    match = pattern.fullmatch(text)
    return match is not None and len(match["name"]) <= _LONGEST_NAME
