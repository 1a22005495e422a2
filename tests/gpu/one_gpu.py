"""W ranks of one process on one GPU: a stream each, driven by one thread."""

import os
import threading
import time
from collections.abc import Callable
from typing import Any

# Before CUDA starts: with the usual 8 queues a rank's kernel may be queued behind another's that
# waits for it. Eager loading: a kernel first used while another waits would wait for that one.
os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "32"
os.environ["CUDA_MODULE_LOADING"] = "EAGER"

import torch

from tetraspark.collectives.cuda_events import new_event, new_stream
from tetraspark.collectives.cuda_group import CudaGroup
from tetraspark.collectives.cuda_opening import cuda_opening
from tetraspark.collectives.failure import CollectiveError
from tetraspark.collectives.settings import Settings
from tetraspark.collectives.shm import ShmTransport

DEVICE = torch.device("cuda", 0)
PATIENCE_S = 20.0


QUEUED = bool(os.environ.get("QUEUED"))
"""Set in the environment: in every group a relay posts, as it would to a NIC."""


def transport(rank: int, settings: Settings) -> ShmTransport:
    """Return a rank's transport."""
    pull = settings.delivery == "pull" and not QUEUED
    return ShmTransport(rank, pull=pull, queued=QUEUED)


def open_ranks(world: int, settings: Settings) -> list[CudaGroup]:
    """Open all ranks of one group, step by step; raises what the first failing one raises."""
    steps = [
        cuda_opening(rank, world, settings, transport(rank, settings), DEVICE)
        for rank in range(world)
    ]
    answer: Any = None
    found: dict[int, CudaGroup] = {}
    errors: list[Exception] = []
    while len(found) < world:
        offers: dict[int, bytes] = {}
        waiting = set(range(world)) - set(found)
        told = dict.fromkeys(waiting, answer)
        while waiting:
            for rank in sorted(waiting):
                try:
                    wanted = steps[rank].send(told[rank])
                except StopIteration as done:
                    found[rank] = CudaGroup(done.value)
                    waiting.discard(rank)
                    continue
                except Exception as error:
                    errors.append(error)
                    waiting.discard(rank)
                    continue
                told[rank] = None
                if wanted is not None:
                    offers[rank] = wanted
                    waiting.discard(rank)
        if errors:
            raise errors[0]
        answer = [offers[rank] for rank in sorted(offers)]
    return [found[rank] for rank in range(world)]


class Ranks:
    """An open group, with a stream and a warm allocator for each rank."""

    def __init__(self, world: int, **settings: Any) -> None:
        self.world = world
        self.groups = open_ranks(world, Settings(**settings))
        self.streams = [new_stream(DEVICE) for _ in range(world)]
        for stream in self.streams:
            with torch.cuda.stream(stream):
                warm = [torch.empty(1 << 19, dtype=torch.uint8, device=DEVICE) for _ in range(16)]
                warm.append(torch.empty(64 << 20, dtype=torch.uint8, device=DEVICE))
                del warm
        torch.cuda.synchronize()

    def each(self, step: Callable[[int, CudaGroup], Any]) -> list[Any]:
        """Call `step` for every rank on its stream."""
        results = []
        for rank, group in enumerate(self.groups):
            with torch.cuda.stream(self.streams[rank]):
                results.append(step(rank, group))
        return results

    def finish(self, deadline_s: float = PATIENCE_S) -> list[CollectiveError | None]:
        """Pass every rank's result boundary; returns each one's error."""
        events = []
        for stream in self.streams:
            events.append(new_event())
            events[-1].record(stream)
        found: list[CollectiveError | None] = []
        for group, event in zip(self.groups, events, strict=True):
            try:
                group.check(deadline_s, event.query)
                found.append(None)
            except CollectiveError as error:
                found.append(error)
        return found

    def succeed(self) -> None:
        """Pass every boundary; raises the first error."""
        for error in self.finish():
            if error is not None:
                raise error

    def close(self) -> list[dict[int, str]]:
        """Close all ranks; each waits for the others, so a thread closes each."""
        fates: list[dict[int, str]] = [{} for _ in self.groups]

        def close(rank: int) -> None:
            fates[rank] = self.groups[rank].close()

        threads = [threading.Thread(target=close, args=(rank,)) for rank in range(self.world)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return fates


def seconds(step: Callable[[], Any]) -> float:
    """Return the wall clock of one call."""
    start = time.monotonic()
    step()
    return time.monotonic() - start
