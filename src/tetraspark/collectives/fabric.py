"""W ranks in one process and one thread: a seeded scheduler that moves every write itself.

It drives the same endpoints, proxy code and supervisors as shared memory does, over a virtual
clock. Each lane of each ordered pair is a queue; payloads are read from the sender's slot when
they are delivered, as a NIC does, so a slot reused too early shows up as wrong bits.
"""

import ctypes
import random
from collections import deque
from dataclasses import dataclass, field

from tetraspark.collectives import native
from tetraspark.collectives.endpoint import Endpoint
from tetraspark.collectives.layout import PROGRESS, Layout
from tetraspark.collectives.liveness import Life

TICK_S = 1e-4
IDLE_TICK_S = 2e-3
STATUS_EVERY_S = 0.02

Key = tuple[int, int, int]
"""(from rank, to rank, lane)."""


@dataclass
class Faults:
    """What goes wrong, changeable while the fabric runs. Times are virtual seconds.

    `hold_back`: chance that a lane rests in a tick, so that lanes and pairs reorder.
    `duplicate`: chance that a delivered write is delivered once more, still in lane order.
    `drop`: lanes that lose every write from now on, unacknowledged. `lose_flag`: lanes whose
    payload arrives and is acknowledged while the flag is lost. `fail`: lanes that report an
    error. `starved`: ranks whose proxy does nothing. `life`: what is known of a process.
    """

    hold_back: float = 0.5
    duplicate: float = 0.0
    drop: set[Key] = field(default_factory=set)
    lose_flag: set[Key] = field(default_factory=set)
    fail: set[Key] = field(default_factory=set)
    starved: set[int] = field(default_factory=set)
    life: dict[int, Life] = field(default_factory=dict)


@dataclass
class Parcel:
    """One write on its way: a payload and its flag, or (`control`) bytes for fixed places."""

    write: native.Write | None
    control: tuple[tuple[int, bytes], ...] = ()
    payload_done: bool = False


class Fabric:
    """The memory of all ranks, the queues between them, and the clock."""

    def __init__(self, world: int, seed: int = 0, faults: Faults | None = None) -> None:
        self.world = world
        self.faults = faults or Faults()
        self.time = 0.0
        self.memory: dict[int, ctypes.Array[ctypes.c_char]] = {}
        self.layout: Layout | None = None
        self.endpoints: dict[int, Endpoint] = {}
        self._random = random.Random(seed)
        self._queues: dict[Key, deque[Parcel]] = {}
        self._status_at = 0.0

    def address(self, rank: int) -> int:
        """Return where a rank's region starts."""
        return ctypes.addressof(self.memory[rank])

    def tick(self) -> None:
        """Let a little time pass: proxies take their writes, lanes deliver some of theirs."""
        self.time += TICK_S if any(self._queues.values()) else IDLE_TICK_S
        for rank, endpoint in self.endpoints.items():
            if rank not in self.faults.starved and self.alive(rank):
                self._take(rank, endpoint)
        if self.time >= self._status_at:
            self._status_at = self.time + STATUS_EVERY_S
            for rank in self.endpoints:
                self._report(rank)
        keys = [key for key, queue in self._queues.items() if queue]
        self._random.shuffle(keys)
        for key in keys:
            if self._random.random() >= self.faults.hold_back:
                self._deliver(key)

    def order(self, ranks: list[int]) -> list[int]:
        """Return the ranks in a random order."""
        return self._random.sample(ranks, len(ranks))

    def alive(self, rank: int) -> bool:
        """Say whether a rank's process runs."""
        return self.faults.life.get(rank, Life.RUNNING) is Life.RUNNING

    def _take(self, rank: int, endpoint: Endpoint) -> None:
        write = endpoint.take()
        while write is not None:
            self._queue((rank, write.peer, write.lane)).append(Parcel(write))
            write = endpoint.take()

    def _queue(self, key: Key) -> deque[Parcel]:
        return self._queues.setdefault(key, deque())

    def _deliver(self, key: Key) -> None:
        source, target, _ = key
        parcel = self._queues[key][0]
        if parcel.write is None:
            self._queues[key].popleft()
            for offset, data in parcel.control:
                ctypes.memmove(self.address(target) + offset, data, len(data))
            return
        if key in self.faults.drop:
            self._queues[key].popleft()
            return
        if key in self.faults.fail:
            self._queues[key].popleft()
            self.endpoints[source].complete(parcel.write, acknowledged=False)
            return
        self._move(key, parcel)

    def _move(self, key: Key, parcel: Parcel) -> None:
        source, target, _ = key
        write = parcel.write
        assert write is not None
        if not parcel.payload_done:
            start = self.address(source) + write.source
            ctypes.memmove(self.address(target) + write.target, start, write.bytes)
            parcel.payload_done = True
            return
        if key not in self.faults.lose_flag:
            flag = ctypes.c_uint64.from_address(self.address(target) + write.flag_target)
            flag.value = write.flag
        if self._random.random() < self.faults.duplicate:
            parcel.payload_done = False
            return
        self._queues[key].popleft()
        if source in self.endpoints:
            self.endpoints[source].complete(write, acknowledged=True)

    def _report(self, rank: int) -> None:
        if rank in self.faults.starved or not self.alive(rank) or self.layout is None:
            return
        progress = native.Progress.from_address(self.address(rank) + PROGRESS)
        words = (progress.doorbell, progress.posted, progress.completed, progress.phase)
        for peer in range(self.world):
            if peer != rank:
                line = (ctypes.c_uint32 * 9)(*words, *progress.acked[peer], 1)
                self.send_control(rank, peer, ((self.layout.status_at(rank), bytes(line)),))

    def send_control(self, source: int, target: int, parts: tuple[tuple[int, bytes], ...]) -> None:
        """Send bytes to fixed places of a peer, outside the lanes."""
        self._queue((source, target, -1)).append(Parcel(None, parts))
