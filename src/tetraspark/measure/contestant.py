"""Who is timed: our group and torch.distributed's, called alike, timed by clock or by GPU."""

import time
from collections.abc import Callable

import torch
import torch.distributed as dist

from tetraspark.collectives.algorithm import Algorithm
from tetraspark.collectives.cuda_group import CudaGroup
from tetraspark.collectives.group import Group
from tetraspark.measure.collectives import OWN, TWO_SHOT, Bench

Call = Callable[[], torch.Tensor]


class Contestant:
    """One contestant at one size: `given` is its input, `call` returns its result.

    `cpu_us`: microseconds of CPU that a call of the last batch took of this process.
    """

    cpu_us = 0.0

    def __init__(self, name: str, given: torch.Tensor, call: Call) -> None:
        self.name = name
        self.given = given
        self.call = call

    @property
    def exact(self) -> bool:
        """Whether every bit is promised, as ours are; rivals add in orders of their own."""
        return self.name in OWN

    def prepare(self, calls: int) -> None:
        """Warm up with one batch."""
        for _ in range(calls):
            self.call()

    def once(self) -> torch.Tensor:
        """Return the result of one call, complete."""
        return self.call()

    def batch(self, calls: int, meet: Callable[[], object]) -> float:
        """Return this rank's microseconds a call over one batch; `meet` lets all start together."""
        meet()
        burned, start = time.process_time(), time.perf_counter()
        for _ in range(calls):
            self.call()
        took = time.perf_counter() - start
        self.cpu_us = (time.process_time() - burned) / calls * 1e6
        return took / calls * 1e6


class GraphedContestant(Contestant):
    """The same on a GPU: calls are replayed from CUDA graphs and timed by events."""

    def prepare(self, calls: int) -> None:
        """Warm up, then capture one call and a batch of them."""
        super().prepare(calls)
        torch.cuda.synchronize()
        self._one, self._result = self._capture(1)
        self._batch, _ = self._capture(calls)

    def _capture(self, calls: int) -> tuple[torch.cuda.CUDAGraph, torch.Tensor]:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            results = [self.call() for _ in range(calls)]
        return graph, results[-1]

    def once(self) -> torch.Tensor:
        """Return the result of one replayed call, complete."""
        self._one.replay()
        torch.cuda.synchronize()
        return self._result

    def batch(self, calls: int, meet: Callable[[], object]) -> float:
        """Return this GPU's microseconds a call over one replay."""
        event: Callable[..., torch.cuda.Event] = torch.cuda.Event  # untyped in torch
        before, after = event(enable_timing=True), event(enable_timing=True)
        torch.cuda.synchronize()
        meet()
        before.record()
        self._batch.replay()
        after.record()
        after.synchronize()
        return float(before.elapsed_time(after)) * 1e3 / calls


def ours(bench: Bench, group: Group | CudaGroup, name: str, own: torch.Tensor) -> Contestant:
    """Return a contestant of ours for inputs like `own`, which lies on the benchmark's device."""
    given = own.clone()
    out = given if bench.in_place else torch.empty_like(given)
    if bench.op == "all_gather":
        return _kind(bench)(name, given, lambda: group.all_gather(given))
    if bench.op == "reduce_scatter":
        return _kind(bench)(name, given, lambda: group.reduce_scatter(given))
    way = Algorithm.TWO_SHOT if name == TWO_SHOT else Algorithm.ONE_SHOT
    return _kind(bench)(name, given, lambda: group.all_reduce(given, out, way))


def rival(bench: Bench, name: str, own: torch.Tensor) -> Contestant:
    """Return torch.distributed's contestant: an all-reduce in place, the others into a tensor."""
    given = own.clone()
    whole = torch.empty(given.numel() * bench.world, dtype=given.dtype, device=given.device)
    part = torch.empty(given.numel() // bench.world, dtype=given.dtype, device=given.device)

    def reduce() -> torch.Tensor:
        dist.all_reduce(given)
        return given

    def gather() -> torch.Tensor:
        dist.all_gather_into_tensor(whole, given)
        return whole

    def scatter() -> torch.Tensor:
        dist.reduce_scatter_tensor(part, given)
        return part

    calls = {"all_reduce": reduce, "all_gather": gather, "reduce_scatter": scatter}
    return _kind(bench)(name, given, calls[bench.op])


def _kind(bench: Bench) -> type[Contestant]:
    return Contestant if bench.device == "cpu" else GraphedContestant
