"""Any mix of operations on fake ranks: what is called, and what it must return."""

from dataclasses import dataclass

import torch

from tests.collectives.fakes import Opened
from tests.collectives.oracle import raw, reduced, shard
from tetraspark.collectives.algorithm import Algorithm
from tetraspark.collectives.chunks import chunk_rows
from tetraspark.collectives.fake import until
from tetraspark.collectives.pending import Pending

DTYPES = (torch.bfloat16, torch.float16, torch.float32)
FOREVER_S = 1000.0
KINDS = ("one-shot", "two-shot", "scatter", "scatter-last", "gather")
SEQUENCES = {"two-shot": 2}
"""How many sequences a call takes, where it is not one."""


@dataclass(frozen=True)
class Call:
    """One operation of every rank: `units` of 16 bytes are reduced, or gathered of each rank."""

    kind: str
    units: int
    seed: int
    in_place: bool = False

    @property
    def dtype(self) -> torch.dtype:
        return DTYPES[self.seed % 3]

    @property
    def shape(self) -> tuple[int, ...]:
        """A flat tensor, or rows of one unit where the last dimension is scattered."""
        count = self.units * 16 // self.dtype.itemsize
        per_unit = 16 // self.dtype.itemsize
        return (per_unit, self.units) if self.kind == "scatter-last" else (count,)

    def inputs(self, world: int) -> list[torch.Tensor]:
        return [shard(self.seed, rank, self.shape, self.dtype) for rank in range(world)]

    def wanted(self, rank: int, world: int) -> bytes:
        """Return the bytes of a rank's result, from the oracle."""
        inputs = self.inputs(world)
        if self.kind == "gather":
            return raw(torch.cat(inputs))
        total = reduced(inputs)
        if self.kind in ("one-shot", "two-shot"):
            return raw(total)
        axis = 0 if self.kind == "scatter" else -1
        extent = total.shape[axis]
        rows = chunk_rows(extent, total.nbytes // extent, world)
        return raw(torch.split(total, list(rows), axis)[rank])

    def begin(self, opened: Opened, rank: int) -> tuple[Pending, torch.Tensor]:
        """Begin on one rank; returns what is pending and where its result will be."""
        group, tensor = opened.groups[rank], self.inputs(opened.fabric.world)[rank]
        if self.kind == "gather":
            return group.begin_all_gather(tensor)
        if self.kind in ("one-shot", "two-shot"):
            out = tensor if self.in_place else torch.empty_like(tensor)
            return group.begin_all_reduce(tensor, out, Algorithm(self.kind)), out
        return group.begin_reduce_scatter(tensor, 0 if self.kind == "scatter" else -1)


def run(opened: Opened, call: Call) -> tuple[dict[int, object], dict[int, torch.Tensor]]:
    """Run one call on every rank that lives; returns each one's fate and result."""
    ranks = [rank for rank in opened.groups if opened.fabric.alive(rank)]
    begun = {rank: call.begin(opened, rank) for rank in ranks}
    steps = {rank: pending.step for rank, (pending, _) in begun.items()}
    return until(opened.fabric, steps, FOREVER_S), {rank: out for rank, (_, out) in begun.items()}


def expect(opened: Opened, call: Call) -> None:
    """Run one call and compare every rank's bits with the oracle's."""
    world = opened.fabric.world
    results, outs = run(opened, call)
    assert results == dict.fromkeys(range(world), True)
    for rank in range(world):
        assert raw(outs[rank]) == call.wanted(rank, world), (call, rank)
