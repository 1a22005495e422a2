"""Text out of a report: what may stand on a page of ours."""

import re

from tetraspark.fleet.plain import plain

BIDI = re.compile("[\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""Characters that reorder or hide the text about them."""
LONGEST = 400
"""Characters shown of one text."""


def clean(text: str) -> str:
    """Return text without what would move or hide the text about it, and not too long."""
    found = BIDI.sub("", plain(text))
    return found if len(found) <= LONGEST else found[:LONGEST] + " …"
