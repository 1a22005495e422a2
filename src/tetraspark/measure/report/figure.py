"""What a page is made of: quantities, cells with their samples, tallies, and traces over time."""

import statistics
from dataclasses import dataclass, field
from typing import Literal

XScale = Literal["log2", "linear", "category"]


def shortened(count: float) -> str:
    """Return a count of tokens or bytes as people write it: 4k, 1M."""
    for factor, letter in ((1 << 20, "M"), (1 << 10, "k")):
        if count >= factor and count % factor == 0:
            return f"{count / factor:g}{letter}"
    return f"{count:g}"


@dataclass(frozen=True)
class Quantity:
    """What an axis shows. `better` tells which direction is good.

    A `log` quantity spans decades; any other begins at zero, so that lengths are honest.
    """

    title: str
    unit: str
    better: Literal["more", "less"]
    x_title: str
    x_scale: XScale
    log: bool = False


@dataclass(frozen=True)
class Key:
    """Where a cell stands. Cells of two sets are compared only where all of it is equal.

    `protocol` is how it was measured, `panel` the plot, `x` the place in it and `label` its name.
    """

    suite: str
    quantity: Quantity
    protocol: str
    panel: str
    x: float
    label: str


@dataclass(frozen=True)
class Cell:
    """Samples of one cell, and every reason for which it may not be believed."""

    samples: tuple[float, ...]
    faults: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether this is a number."""
        return bool(self.samples) and not self.faults

    @property
    def median(self) -> float:
        """Median of the samples. Raises ValueError for a cell that is not valid."""
        if not self.valid:
            raise ValueError(f"no number: {self.faults}")
        return statistics.median(self.samples)

    @property
    def low(self) -> float:
        """The smallest sample."""
        return min(self.samples)

    @property
    def high(self) -> float:
        """The largest sample."""
        return max(self.samples)

    @property
    def why(self) -> str:
        """Why it is no number."""
        return "; ".join(self.faults) or "no sample"

    def __add__(self, other: "Cell") -> "Cell":
        faults = tuple(dict.fromkeys(self.faults + other.faults))
        return Cell(self.samples + other.samples, faults)


@dataclass(frozen=True)
class Tally:
    """So many passed of a total; `notes` says what did not."""

    passed: int
    total: int
    notes: tuple[str, ...] = ()

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.passed + other.passed, self.total + other.total, self.notes + other.notes)


@dataclass(frozen=True)
class TallyKey:
    """Where a tally stands in the table of its suite."""

    suite: str
    protocol: str
    row: str
    column: str


@dataclass(frozen=True)
class Trace:
    """Values over minutes, one set's; None where the value may not be believed."""

    suite: str
    quantity: Quantity
    protocol: str
    panel: str
    points: tuple[tuple[float, float | None], ...]


@dataclass(frozen=True)
class Gathered:
    """All that one set of reports shows."""

    cells: dict[Key, Cell] = field(default_factory=dict)
    tallies: dict[TallyKey, Tally] = field(default_factory=dict)
    traces: tuple[Trace, ...] = ()
    notes: tuple[str, ...] = ()

    def __add__(self, other: "Gathered") -> "Gathered":
        cells, tallies = dict(self.cells), dict(self.tallies)
        for key, cell in other.cells.items():
            cells[key] = cells[key] + cell if key in cells else cell
        for place, tally in other.tallies.items():
            tallies[place] = tallies[place] + tally if place in tallies else tally
        return Gathered(cells, tallies, self.traces + other.traces, self.notes + other.notes)
