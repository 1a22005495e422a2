"""A benchmark of the collectives: what to measure, and what was measured."""

import math
import re
import statistics
from dataclasses import asdict, dataclass, field
from typing import Literal

from tetraspark.errors import Problem, UsageError

Op = Literal["all_reduce", "all_gather", "reduce_scatter"]
Dtype = Literal["bf16", "fp16", "fp32"]
Delivery = Literal["pull", "push"]
Device = Literal["cpu", "cuda"]

UNIT = 16
"""Bytes; every share of a rank is a multiple of it, as the collectives require."""
LARGEST = 128 << 20
"""Bytes; the largest power of two that a group can be set to."""
OURS = "ours"
TWO_SHOT = "two-shot"
OWN = (OURS, TWO_SHOT)
"""Our contestants: every bit of theirs is promised."""
SUFFIXES = {"": 1, "K": 1 << 10, "M": 1 << 20}


def parse_size(text: str, where: str) -> int:
    """Return the bytes of "4096", "16K" or "1M" (powers of two). Raises UsageError at `where`."""
    match = re.fullmatch(r"([1-9][0-9]{0,11})([KM]?)", text.strip().upper())
    size = int(match[1]) * SUFFIXES[match[2]] if match else 0
    if size < 1 or size & (size - 1):
        raise UsageError(
            Problem(where, text, "a power of two in bytes, with or without K or M", "16K, 1M")
        )
    return size


def bus_factor(op: Op, world: int) -> float:
    """Return what algbw is multiplied by to give busbw, as nccl-tests defines both.

    Source: github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md, "Bus bandwidth": 2(n-1)/n for
    all-reduce, (n-1)/n for all-gather and reduce-scatter; algbw is size over time.
    """
    return (2 if op == "all_reduce" else 1) * (world - 1) / world


@dataclass(frozen=True)
class Bench:
    """One benchmark. Raises UsageError for what cannot be measured.

    `smallest`, `largest`: bytes, powers of two; the sizes double from one to the other. As in
    nccl-tests the size of an all-gather or a reduce-scatter is that of the whole. `in_place`: ours
    only; torch's all-reduce has no other way. Each of `rounds` times `calls` calls of each
    contestant.
    """

    world: int
    op: Op
    dtype: Dtype
    smallest: int
    largest: int
    lanes: int
    delivery: Delivery
    in_place: bool
    device: Device
    rounds: int
    calls: int

    def __post_init__(self) -> None:
        least = self._unit()
        if not least <= self.smallest <= self.largest <= LARGEST:
            seen = f"sizes from {self.smallest} to {self.largest} bytes"
            wanted = f"{least} <= --min <= --max <= {LARGEST} for {self.world} ranks"
            raise UsageError(Problem("--min, --max", seen, wanted))
        if self.in_place and self.op != "all_reduce":
            seen = f"--in-place with {self.op}"
            raise UsageError(
                Problem("--in-place", seen, "an all_reduce", "drop --in-place: it returns a tensor")
            )
        for name in ("rounds", "calls"):
            if getattr(self, name) < 1:
                raise UsageError(Problem(f"--{name}", str(getattr(self, name)), "at least 1"))

    def sizes(self) -> tuple[int, ...]:
        """Return the sizes asked for, in bytes."""
        doublings = (self.largest // self.smallest).bit_length()
        return tuple(self.smallest << step for step in range(doublings))

    @property
    def own(self) -> tuple[str, ...]:
        """Our contestants: an all-reduce has two ways."""
        return OWN if self.op == "all_reduce" else (OURS,)

    def _unit(self) -> int:
        """Return the bytes that a whole must be a multiple of: equal parts of whole units."""
        return UNIT if self.op == "all_reduce" else UNIT * self.world

    def share(self, size: int) -> int:
        """Return the bytes each rank gives: the whole, but of an all-gather a part of it."""
        return self.moved(size) // (self.world if self.op == "all_gather" else 1)

    def moved(self, size: int) -> int:
        """Return the bytes that a row says: those asked for, down to what has equal parts."""
        return size // self._unit() * self._unit()

    def busbw(self, size: int, us: float) -> float:
        """Return GB/s (10^9 bytes), from the bytes of a row and the time of a call."""
        return size / us / 1e3 * bus_factor(self.op, self.world)


@dataclass(frozen=True)
class Samples:
    """One contestant at one size.

    `us`: microseconds a call of the slowest rank, by round. `wrong` of the `compared` values of
    all ranks and rounds were not what they had to be. `cpu_us`: microseconds of CPU that a call
    took of all ranks together, by round: other work on the machine hardly changes it.
    """

    us: tuple[float, ...]
    wrong: int
    compared: int
    cpu_us: tuple[float, ...] = ()

    @property
    def median(self) -> float:
        """Microseconds."""
        return statistics.median(self.us)

    @property
    def p90(self) -> float:
        """Microseconds; the nearest rank, so a round that was really timed."""
        return sorted(self.us)[math.ceil(0.9 * len(self.us)) - 1]

    def __add__(self, other: "Samples") -> "Samples":
        return Samples(
            self.us + other.us,
            self.wrong + other.wrong,
            self.compared + other.compared,
            self.cpu_us + other.cpu_us,
        )


@dataclass(frozen=True)
class Row:
    """All contestants at one size in bytes."""

    size: int
    samples: dict[str, Samples]

    @property
    def rivals(self) -> tuple[str, ...]:
        """Everyone who is not of us."""
        return tuple(name for name in self.samples if name not in OWN)

    @property
    def own(self) -> tuple[str, ...]:
        """Our contestants."""
        return tuple(name for name in self.samples if name in OWN)

    def ratio(self, other: str) -> float:
        """The median of ours over that of another: below 1, ours is faster."""
        return self.samples[OURS].median / self.samples[other].median


@dataclass(frozen=True)
class Report:
    """What was measured, how, and on what; `about` describes the machine and the software."""

    bench: Bench
    about: dict[str, str]
    rows: tuple[Row, ...] = field(default_factory=tuple)

    def wrong(self, name: str) -> int:
        """Return the wrong values of one contestant."""
        return sum(row.samples[name].wrong for row in self.rows)

    @property
    def wrong_own(self) -> int:
        """The wrong values of our contestants together."""
        return sum(row.samples[name].wrong for row in self.rows for name in row.own)

    @property
    def compared_own(self) -> int:
        """The values of our contestants that were compared."""
        return sum(row.samples[name].compared for row in self.rows for name in row.own)

    @property
    def ok(self) -> bool:
        """Whether every value of ours was compared and right."""
        return self.compared_own > 0 and self.wrong_own == 0

    def as_dict(self) -> dict[str, object]:
        """Return the report as JSON-able values; times in microseconds, bandwidth in GB/s."""
        return {
            "ok": self.ok,
            "wrong": self.wrong_own,
            "about": self.about,
            "bench": asdict(self.bench),
            "rows": [self._row(row) for row in self.rows],
        }

    def _row(self, row: Row) -> dict[str, object]:
        found: dict[str, object] = {"bytes": row.size}
        for name, samples in row.samples.items():
            found[name] = {
                "us": samples.median,
                "p90": samples.p90,
                "busbw": self.bench.busbw(row.size, samples.median),
                "wrong": samples.wrong,
                "compared": samples.compared,
                "rounds_us": list(samples.us),
                "cpu_us": statistics.median(samples.cpu_us) if samples.cpu_us else None,
            }
        return found | {"ratio": {name: row.ratio(name) for name in row.samples if name != OURS}}
