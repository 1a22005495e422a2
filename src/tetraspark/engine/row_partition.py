"""Which rows of a prefill chunk each rank scores. Pure: no torch, no engine."""

from collections.abc import Sequence
from dataclasses import dataclass

ROW_ALIGNMENT = 128
"""Rows; a multiple of the 128 // heads rows that DeepGEMM's kernels score together."""


@dataclass(frozen=True)
class Partition:
    """Rows `[begin, end)` of `rows`, for one rank of `world`.

    All ranks have the same `extent`, so the last ones may have fewer rows, or none. Slices start
    at multiples of the kernels' row group: the rows of a group are scored together, split or not.
    """

    rows: int
    world: int
    rank: int

    def __post_init__(self) -> None:
        if self.rows < 0 or not 0 <= self.rank < self.world:
            raise ValueError(f"no partition of {self.rows} rows for {self.rank} of {self.world}")

    @property
    def extent(self) -> int:
        """Rows of each rank's share: a multiple of ROW_ALIGNMENT."""
        share = -(-self.rows // self.world)
        return -(-share // ROW_ALIGNMENT) * ROW_ALIGNMENT

    @property
    def begin(self) -> int:
        """First row of this rank."""
        return min(self.rank * self.extent, self.rows)

    @property
    def end(self) -> int:
        """Row after the last of this rank."""
        return min(self.begin + self.extent, self.rows)

    @property
    def own(self) -> slice:
        """The rows of this rank."""
        return slice(self.begin, self.end)

    def of_rank(self, rank: int) -> "Partition":
        """Return the share of another rank."""
        return Partition(self.rows, self.world, rank)

    def rows_per_request(self, rows_per_request: Sequence[int]) -> list[int]:
        """Return how many of each request's rows are in this share, zeros included.

        The zeros keep the list aligned with the lengths of the requests, which stay whole.
        """
        found, start = [], 0
        for count in rows_per_request:
            stop = start + count
            found.append(max(0, min(stop, self.end) - max(start, self.begin)))
            start = stop
        return found
