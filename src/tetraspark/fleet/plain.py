"""Text of other machines for a terminal or a message."""

import re

# Colours and other sequences of terminals (ECMA-48: CSI, and two-character escapes).
ESCAPE = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """Return text without what would move, colour or rewrite a terminal; newlines and tabs stay."""
    return CONTROL.sub("", ESCAPE.sub("", text))
