"""One rank of a benchmark of the collectives: `python -m ... FOLDER RANK`, started by its parent.

Reads `bench.json` from the folder, touches `alive-RANK` after each round, and leaves its result
or its error in `result-RANK.json`. Exits 1 with an error.
"""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from tetraspark.collectives.cuda_group import CudaGroup
from tetraspark.collectives.group import Group
from tetraspark.collectives.settings import Settings
from tetraspark.measure.collectives import Bench, Samples
from tetraspark.measure.contestant import Contestant, ours, rival
from tetraspark.measure.oracle import DTYPES, Answer, gathered, rotated, shards, summed
from tetraspark.measure.rank_result import leave

LIMIT_S = 60.0
"""A collective, ours or a rival's, that takes longer is a failure."""
CHECK_S = 10.0


class Rank:
    """A rank that has met the others."""

    def __init__(self, bench: Bench, name: str, rank: int, folder: Path) -> None:
        self._bench = bench
        self._rival = name
        self._rank = rank
        self._alive = folder / f"alive-{rank}"
        self._device = torch.device(f"cuda:{rank}" if bench.device == "cuda" else "cpu")
        # Meets and set-up go over a group of their own: NCCL's would occupy the GPU.
        self._control = dist.new_group(backend="gloo")
        self._group = self._open()

    def _open(self) -> Group | CudaGroup:
        bench = self._bench
        gathers = bench.op == "all_gather"
        settings = Settings(
            max_reduce_bytes=bench.largest if bench.op == "all_reduce" else 1 << 12,
            max_gather_bytes=bench.share(bench.largest) if gathers else 1 << 12,
            max_two_shot_bytes=0 if gathers else bench.largest,
            lanes=bench.lanes,
            delivery=bench.delivery,
            late_limit_s=LIMIT_S,
        )
        if bench.device == "cuda":
            return CudaGroup.open(self._rank, bench.world, self._exchange, self._device, settings)
        return Group.open(self._rank, bench.world, self._exchange, settings)

    def _exchange(self, data: bytes) -> list[bytes]:
        found: list[bytes] = [b""] * self._bench.world
        dist.all_gather_object(found, data, group=self._control)
        return found

    def _meet(self) -> None:
        barrier: Callable[..., object] = dist.barrier
        barrier(group=self._control)

    def measure(self) -> list[dict[str, Any]]:
        """Return each size's samples by contestant, of this rank alone."""
        rows = []
        for size in self._bench.sizes():
            samples = self._measure_size(size)
            row = {name: asdict(found) for name, found in samples.items()}
            rows.append({"size": self._bench.moved(size), "samples": row})
        self._meet()
        self._group.close()
        return rows

    def _measure_size(self, size: int) -> dict[str, Samples]:
        bench = self._bench
        dtype = DTYPES[bench.dtype]
        base = shards(size, bench.world, bench.share(size) // dtype.itemsize, dtype)
        own = base[self._rank].to(self._device)
        contestants = [ours(bench, self._group, name, own) for name in bench.own]
        contestants.append(rival(bench, self._rival, own))
        for one in contestants:
            one.prepare(bench.calls)
        found = {one.name: Samples((), 0, 0) for one in contestants}
        for number in range(bench.rounds):
            given = rotated(base, number + 1)
            # Who goes first changes, so that none always follows the other.
            for one in contestants if number % 2 == 0 else reversed(contestants):
                found[one.name] += self._round(one, given)
            self._alive.touch()
        return found

    def _round(self, one: Contestant, given: list[torch.Tensor]) -> Samples:
        """Compare one call of new inputs, then time a batch of the same."""
        answer = self._answer(given)
        one.given.copy_(given[self._rank])
        seen = one.once()
        wrong = answer.differing(seen) if one.exact else answer.beyond(seen)
        one.given.copy_(given[self._rank])
        us = one.batch(self._bench.calls, self._meet)
        self._group.check(CHECK_S)
        return Samples((us,), wrong, answer.values.numel(), (one.cpu_us,))

    def _answer(self, given: list[torch.Tensor]) -> Answer:
        if self._bench.op == "all_gather":
            return gathered(given)
        whole = summed(given)
        return whole if self._bench.op == "all_reduce" else whole.part(self._rank, len(given))


def join(bench: Bench, rank: int, folder: Path) -> None:
    """Meet the other ranks in torch.distributed."""
    backend = "gloo"
    if bench.device == "cuda":
        torch.cuda.set_device(rank)
        backend = "cpu:gloo,cuda:nccl"
    dist.init_process_group(
        backend,
        init_method=f"file://{folder}/store",
        rank=rank,
        world_size=bench.world,
        timeout=timedelta(seconds=LIMIT_S),
    )


def about(bench: Bench) -> dict[str, str]:
    """Return the software and devices as this rank sees them."""
    found = {"torch": torch.__version__, "device": "CPU, one thread a rank"}
    if bench.device == "cuda":
        found["device"] = torch.cuda.get_device_name()
        found["cuda"] = str(torch.version.cuda)
        nccl: Callable[[], tuple[int, ...]] = torch.cuda.nccl.version
        found["nccl"] = ".".join(map(str, nccl()))
    return found


def run(folder: Path, rank: int) -> dict[str, Any]:
    """Measure as the folder says; returns what the parent reads."""
    told = json.loads((folder / "bench.json").read_text())
    bench = Bench(**told["bench"])
    torch.set_num_threads(1)
    join(bench, rank, folder)
    rows = Rank(bench, told["rival"], rank, folder).measure()
    return {"about": about(bench), "rows": rows}


def main() -> int:
    """Return the exit code."""
    return leave(run)


if __name__ == "__main__":
    ended = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # A process group that lost a rank would be waited for at the interpreter's end.
    os._exit(ended)
