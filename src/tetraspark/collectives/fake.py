"""The transport of a test fabric, and two ways to drive its ranks in one thread."""

import ctypes
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from tetraspark.collectives.endpoint import Endpoint
from tetraspark.collectives.fabric import Fabric
from tetraspark.collectives.layout import ABORT, Layout
from tetraspark.collectives.liveness import Life
from tetraspark.collectives.transport import Finding, Seen


class FakeTransport:
    """One rank's side of a fabric."""

    name = "fake"
    direct = False
    pull = False

    def __init__(self, fabric: Fabric, rank: int) -> None:
        self._fabric = fabric
        self._rank = rank
        self._lanes = 0

    def open(self, layout: Layout) -> bytes:
        """Make the region, zeroed, on a page boundary's worth of alignment."""
        self._fabric.layout = layout
        self._lanes = layout.lanes
        self._fabric.memory[self._rank] = ctypes.create_string_buffer(layout.total)
        return b"fake"

    def connect(self, cards: Sequence[bytes]) -> list[int]:
        """Return the own region only: a queued transport maps no other."""
        return [
            self._fabric.address(rank) if rank == self._rank else 0 for rank in range(len(cards))
        ]

    def seal(self) -> None:
        """Nothing to remove."""

    def attach(self, endpoint: Endpoint) -> None:
        """Let the fabric play this rank's proxy."""
        self._fabric.endpoints[self._rank] = endpoint

    def now(self) -> float:
        """Return the virtual clock."""
        return self._fabric.time

    def pause(self, seconds: float) -> None:
        """Tick until that much virtual time has passed."""
        end = self._fabric.time + seconds
        while self._fabric.time < end:
            self._fabric.tick()

    def seen(self, peer: int) -> Seen | None:
        """Read the status line the peer last sent."""
        assert self._fabric.layout is not None
        at = self._fabric.address(self._rank) + self._fabric.layout.status_at(peer)
        doorbell, posted, completed, phase, *rest = (ctypes.c_uint32 * 9).from_address(at)
        acked, reported = tuple(rest[: self._lanes]), rest[-1]
        return Seen(doorbell, posted, completed, phase, acked) if reported else None

    def life(self, peer: int) -> Life:
        """Return what the faults say."""
        return self._fabric.faults.life.get(peer, Life.RUNNING)

    def finding(self) -> Finding | None:
        """Nothing of it breaks alone."""
        return None

    def details(self) -> dict[str, Any]:
        """Nothing more than every transport has."""
        return {}

    def leave_record(self, data: bytes) -> None:
        """Send the record and the alarm to every peer."""
        assert self._fabric.layout is not None
        offset = self._fabric.layout.record_at(self._rank)
        word = (len(data) + 1).to_bytes(8, "little")
        alarm = (self._rank + 1).to_bytes(8, "little")
        parts = ((offset + 8, data), (offset, word))
        for offset_part, part in parts:
            ctypes.memmove(self._fabric.address(self._rank) + offset_part, part, len(part))
        for peer in range(self._fabric.world):
            if peer != self._rank:
                self._fabric.send_control(self._rank, peer, (*parts, (ABORT, alarm)))

    def close(self) -> None:
        """Leave the fabric; writes already queued still arrive."""
        self._fabric.endpoints.pop(self._rank, None)


Step = Generator[bytes | None, Sequence[bytes] | None, object]


def run_together(fabric: Fabric, steps: Mapping[int, Step]) -> dict[int, object]:
    """Drive one generator a rank, answering exchanges; return each one's value or exception."""
    results: dict[int, object] = {}
    offers: dict[int, bytes] = {}
    answer: dict[int, Sequence[bytes] | None] = dict.fromkeys(steps)
    waiting = set(steps)
    while waiting:
        fabric.tick()
        for rank in sorted(waiting):
            if rank in offers or not fabric.alive(rank):
                continue
            try:
                wanted = steps[rank].send(answer[rank])
            except StopIteration as done:
                results[rank] = done.value
                waiting.discard(rank)
                continue
            except Exception as error:
                results[rank] = error
                waiting.discard(rank)
                continue
            answer[rank] = None
            if wanted is not None:
                offers[rank] = wanted
        if len(offers) == len(steps):
            everyone = [offers[rank] for rank in sorted(offers)]
            answer = dict.fromkeys(steps, everyone)
            offers.clear()
        waiting -= {rank for rank in waiting if not fabric.alive(rank)}
    return results


def until(
    fabric: Fabric, steps: dict[int, Callable[[], bool]], limit_s: float
) -> dict[int, object]:
    """Call each rank's step, in a random order a tick, until all are over.

    Returns True or the exception of each rank; a rank whose process does not run is not called.
    Raises TimeoutError when `limit_s` of virtual time was not enough.
    """
    results: dict[int, object] = {}
    end = fabric.time + limit_s
    while len(results) < len([rank for rank in steps if fabric.alive(rank)]):
        if fabric.time > end:
            raise TimeoutError(f"only ranks {sorted(results)} were done in {limit_s} s")
        fabric.tick()
        for rank in fabric.order(list(steps)):
            if rank in results or not fabric.alive(rank):
                continue
            try:
                if steps[rank]():
                    results[rank] = True
            except Exception as error:
                results[rank] = error
    return results
