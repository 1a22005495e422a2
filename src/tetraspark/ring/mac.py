"""MAC addresses, as texts in one spelling."""

import re

MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")


def is_card(text: str) -> bool:
    """Whether a text is the address of one card: lower case, not a group's, not all zeros."""
    return MAC.fullmatch(text) is not None and not int(text[:2], 16) & 1 and text.strip("0:") != ""
