"""One rank of `tetraspark tune`: `python -m ... FOLDER RANK`, started as `rank_processes` says.

Every rank times, rank 0 decides from the slowest of each, and all get its one decision.
"""

import json
import os
import statistics
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from tetraspark.measure.collectives import OWN, Bench
from tetraspark.measure.collectives_rank import CHECK_S, Rank, about, join
from tetraspark.measure.contestant import Contestant, ours, rival
from tetraspark.measure.oracle import DTYPES, rotated, shards, summed
from tetraspark.measure.rank_processes import PROGRESS, TOLD
from tetraspark.measure.rank_result import leave
from tetraspark.measure.tune import Curve, Timing, decide, typical

BATCH_US = 20_000.0
"""About what a timed batch of calls takes."""
TRIAL_CALLS = 2
"""Calls from which the length of a batch is estimated."""
PERIOD = 99_991
"""Values after which the inputs compared repeat: a prime, so that no chunk looks like another."""
Times = dict[str, float]


class TuneRank(Rank):
    """A rank that has met the others; its bench names sizes, rounds, and the most calls."""

    def __init__(self, bench: Bench, name: str, rank: int, folder: Path) -> None:
        super().__init__(bench, name, rank, folder)
        self._progress = folder / PROGRESS
        self._calls: dict[tuple[int, str], int] = {}
        self.wrong = 0
        self.compared = 0

    def _told(self, value: Any) -> list[Any]:
        """Return what every rank tells, by rank."""
        found: list[Any] = [None] * self._bench.world
        dist.all_gather_object(found, value, group=self._control)
        return found

    def tune(self, repeats: int) -> dict[str, Any]:
        """Return the curves of the slowest ranks, by repeat, and rank 0's decision."""
        mine = [self._repeat(number, repeats) for number in range(repeats)]
        curves = [slowest(every) for every in zip(*self._told(mine), strict=True)]
        told: list[Any] = [asdict(decide(typical(curves))) if self._rank == 0 else None]
        dist.broadcast_object_list(told, src=0, group=self._control)
        self._group.close()
        return {
            "curves": [[asdict(one) for one in curve] for curve in curves],
            "decision": told[0],
            "wrong": self.wrong,
            "compared": self.compared,
        }

    def _repeat(self, number: int, repeats: int) -> list[tuple[int, Times]]:
        found = []
        for size in self._bench.sizes():
            if self._rank == 0:
                words = f"repeat {number + 1} of {repeats}, {size} bytes"
                self._progress.write_text(words)
            found.append((size, self._times(size, first=number == 0)))
        return found

    def _times(self, size: int, *, first: bool) -> Times:
        """Return this rank's median of each contestant, who take turns in every round."""
        bench, dtype = self._bench, DTYPES[self._bench.dtype]
        ones = torch.ones(size // dtype.itemsize, dtype=dtype, device=self._device)
        own = [ours(bench, self._group, name, ones) for name in OWN]
        if first:
            self._compare(size, own)
        contestants = [*own, rival(bench, self._rival, ones)]
        calls = {one.name: self._prepared(size, one) for one in contestants}
        us: dict[str, list[float]] = {one.name: [] for one in contestants}
        for number in range(bench.rounds):
            for one in contestants if number % 2 == 0 else reversed(contestants):
                one.given.copy_(ones)
                us[one.name].append(one.batch(calls[one.name], self._meet))
            self._group.check(CHECK_S)
            self._alive.touch()
        return {name: statistics.median(found) for name, found in us.items()}

    def _prepared(self, size: int, one: Contestant) -> int:
        """Make ready for batches of about `BATCH_US`; returns their calls, equal on every rank."""
        key = (size, one.name)
        if key not in self._calls:
            one.prepare(TRIAL_CALLS)
            slowest_us = max(self._told(one.batch(TRIAL_CALLS, self._meet)))
            self._calls[key] = max(1, min(self._bench.calls, int(BATCH_US / slowest_us)))
        one.prepare(self._calls[key])
        return self._calls[key]

    def _compare(self, size: int, own: list[Contestant]) -> None:
        """Compare one call of each algorithm bit by bit with the sum in rank order."""
        count = own[0].given.numel()
        base = shards(size, self._bench.world, min(count, PERIOD), DTYPES[self._bench.dtype])
        base = [one.repeat(-(-count // PERIOD))[:count] for one in base]
        for step, one in enumerate(own):
            given = rotated(base, step)
            one.prepare(1)
            one.given.copy_(given[self._rank])
            answer = summed(given)
            self.wrong += answer.differing(one.once())
            self.compared += answer.values.numel()


def slowest(ranks: tuple[list[tuple[int, Times]], ...]) -> Curve:
    """Return the curve of one repeat: at each size, of each contestant, its slowest rank."""
    curve = []
    for same in zip(*ranks, strict=True):
        size, times = same[0]
        us = [max(found[name] for _, found in same) for name in times]
        curve.append(Timing(size, *us))
    return tuple(curve)


def run(folder: Path, rank: int) -> dict[str, Any]:
    """Measure as the folder says; returns what the parent reads."""
    told = json.loads((folder / TOLD).read_text())
    bench = Bench(**told["bench"])
    torch.set_num_threads(1)
    join(bench, rank, folder)
    found = TuneRank(bench, told["rival"], rank, folder).tune(told["repeats"])
    return {"about": about(bench) | nccl_environment(bench), **found}


def nccl_environment(bench: Bench) -> dict[str, str]:
    """Return the variables that change what the rival does, as this rank has them."""
    names = sorted(name for name in os.environ if name.startswith("NCCL_"))
    if bench.device == "cpu" or not names:
        return {}
    return {"environment": " ".join(f"{name}={os.environ[name]}" for name in names)}


if __name__ == "__main__":
    ended = leave(run)
    sys.stdout.flush()
    sys.stderr.flush()
    # A process group that lost a rank would be waited for at the interpreter's end.
    os._exit(ended)
