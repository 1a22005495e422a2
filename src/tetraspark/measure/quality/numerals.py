"""The numbers of a text, as people and models write them. Pure."""

import re

MINUS = "\N{MINUS SIGN}"
NUMBER = re.compile(rf"(?<![\w.])[-{MINUS}]?(?:\d{{1,3}}(?:,\d{{3}})+(?!\d)|\d+)(?:\.\d+)?(?!\w)")


def numbers(text: str) -> list[float]:
    """Return every number of a text; a comma may stand between thousands."""
    return [float(one.replace(",", "").replace(MINUS, "-")) for one in NUMBER.findall(text)]
