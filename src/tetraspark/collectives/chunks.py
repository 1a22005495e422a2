"""Which part of a tensor each rank reduces: fixed by its size and the world alone."""

from collections.abc import Sequence
from math import gcd

from tetraspark.collectives.flags import UNIT
from tetraspark.collectives.routes import stripe_units


def chunk_rows(rows: int, row_bytes: int, world: int) -> tuple[int, ...]:
    """Split `rows` rows over the ranks, by as few as make whole 16-byte units.

    The first ranks take the remainder; the last may get none. So 1-byte rows split a flat buffer
    by units, and rows of whole units split by the row. The whole must be a multiple of 16 bytes.
    """
    step = UNIT // gcd(UNIT, row_bytes)
    return tuple(steps * step for steps in stripe_units(rows // step, world))


def places(sizes: Sequence[int]) -> list[int]:
    """Return where each part begins when all lie one after another."""
    return [sum(sizes[:rank]) for rank in range(len(sizes))]
