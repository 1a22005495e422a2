"""Which examples are held out: decided by what is asked, never by the draw."""

import hashlib
from collections.abc import Callable
from typing import Literal, TypeVar

Split = Literal["training", "held out"]
Drawn = TypeVar("Drawn")
SHARE = 10  # one key in ten is held out


def split_of(key: str) -> Split:
    """Return the split of an example's key: SHA-256 of it, the first eight bytes modulo SHARE."""
    digest = hashlib.sha256(key.encode()).digest()
    return "held out" if int.from_bytes(digest[:8], "big") % SHARE == 0 else "training"


def draw(split: Split, one: Callable[[], Drawn], key: Callable[[Drawn], str]) -> Drawn:
    """Return the first of the drawn values whose key belongs to the split."""
    while True:
        drawn = one()
        if split_of(key(drawn)) == split:
            return drawn
