"""Ranks as threads of one process, which meet in each gather."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from tetraspark.engine.prefill_scope import SCOPE, Scope

MEETING_LIMIT_S = 20
BROKEN = threading.BrokenBarrierError


class Meeting:
    """What the ranks of one run share; `gathered` holds the result of every gather."""

    def __init__(self, world: int) -> None:
        self.world = world
        self.gathered: list[torch.Tensor] = []
        self.shards: list[torch.Tensor | None] = [None] * world
        self.barrier = threading.Barrier(world, timeout=MEETING_LIMIT_S)


class ThreadRank:
    """One rank's view of the group, as the engine's `GroupCoordinator` shows it."""

    def __init__(self, meeting: Meeting, rank: int) -> None:
        self._meeting, self.rank_in_group, self.world_size = meeting, rank, meeting.world

    def all_gather(self, input_: torch.Tensor, dim: int = -1) -> torch.Tensor:
        meeting = self._meeting
        assert dim == 0
        meeting.shards[self.rank_in_group] = input_
        meeting.barrier.wait()
        shards = [shard for shard in meeting.shards if shard is not None]
        assert len({(shard.shape, shard.dtype) for shard in shards}) == 1
        whole = torch.cat(shards)
        if self.rank_in_group == 0:
            meeting.gathered.append(whole)
        meeting.barrier.wait()
        return whole


def in_lockstep(
    world: int, work: Callable[[], Any], min_rows: int = 1
) -> tuple[list[Any], list[torch.Tensor]]:
    """Run `work` once a rank inside a split; return the ranks' results and the gathers'."""
    meeting = Meeting(world)

    def run(rank: int) -> Any:
        token = SCOPE.set(Scope(ThreadRank(meeting, rank), min_rows, context=1 << 20))
        try:
            return work()
        except BaseException:
            meeting.barrier.abort()
            raise
        finally:
            SCOPE.reset(token)

    with ThreadPoolExecutor(world) as pool:
        asked = [pool.submit(run, rank) for rank in range(world)]
        faults = [one.exception() for one in asked]
    for fault in sorted(filter(None, faults), key=lambda f: isinstance(f, BROKEN)):
        raise fault
    return [one.result() for one in asked], meeting.gathered
