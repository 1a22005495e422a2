"""Text of other machines for a terminal or a message."""

import re

# Colours, titles and other sequences of terminals (ECMA-48: CSI, the strings that BEL or ST end,
# two-character escapes).
ESCAPE = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\n]*(\x07|\x1b\\)|[@-Z\\-_])")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """Return text without what would move, colour or rewrite a terminal; newlines and tabs stay."""
    return CONTROL.sub("", ESCAPE.sub("", text))
