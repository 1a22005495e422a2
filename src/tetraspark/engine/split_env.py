"""The variables through which a plan asks for the prefill split; needs no torch."""

from collections.abc import Mapping
from dataclasses import dataclass

MIN_CONTEXT = "TETRASPARK_PREFILL_MIN_CONTEXT"
MIN_ROWS = "TETRASPARK_PREFILL_MIN_ROWS"

NAMES = ((MIN_CONTEXT, "min_context"), (MIN_ROWS, "min_rows"))
"""(variable, key of the site's [prefill_split] and field of SplitSettings)."""

CONTEXT_FLOOR = 32_768
"""Tokens; in shorter contexts the scores cost less than the gather that a split adds."""

ROWS_FLOOR = 1024
"""Query rows; fewer would leave a rank of eight with less than one aligned share of 128."""


@dataclass(frozen=True)
class SplitSettings:
    """From which context (tokens) and how many query rows on a prefill step is split.

    Raises ValueError below the floors.
    """

    min_context: int
    min_rows: int

    def __post_init__(self) -> None:
        for name, value, floor in (
            ("min_context", self.min_context, CONTEXT_FLOOR),
            ("min_rows", self.min_rows, ROWS_FLOOR),
        ):
            if value < floor:
                raise ValueError(f"prefill split: {name} = {value}: wanted at least {floor}")


def split_settings(env: Mapping[str, str]) -> SplitSettings | None:
    """Return the settings, or None when the plan asks for no split.

    Raises ValueError when only one variable is set, or for a value that is no number or too low.
    """
    present = [name for name, _ in NAMES if name in env]
    if not present:
        return None
    absent = [name for name, _ in NAMES if name not in env]
    if absent:
        raise ValueError(f"{absent[0]}: not set, though {present[0]} is")
    return SplitSettings(**{field: int(env[name]) for name, field in NAMES})
