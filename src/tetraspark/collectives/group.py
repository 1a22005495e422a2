"""The collectives of one group of ranks, for CPU tensors."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch

from tetraspark.collectives.algorithm import Algorithm
from tetraspark.collectives.calls import Calls
from tetraspark.collectives.failure import Kind
from tetraspark.collectives.liveness import Life
from tetraspark.collectives.opening import Exchange, Link, drive, opening
from tetraspark.collectives.pending import Pending
from tetraspark.collectives.report import state_of
from tetraspark.collectives.settings import Settings
from tetraspark.collectives.shm import ShmTransport
from tetraspark.collectives.transport import Phase, Transport
from tetraspark.collectives.watchdog import Watchdog


class Group:
    """All ranks must call the same operations with the same shapes in the same order.

    A difference is an error that names both sides, on every rank. After any error the group
    stays failed and each call raises the same root. One operation at a time.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._lock = threading.Lock()
        # A status thread may ask while another closes.
        self._releasing = threading.Lock()
        self._calls = Calls(link)
        self._closed = False

    @classmethod
    def open(
        cls,
        rank: int,
        world: int,
        exchange: Exchange,
        settings: Settings | None = None,
        transport: Transport | None = None,
    ) -> "Group":
        """Vote, connect and prove every lane and slot; `transport` None is shared memory.

        Raises RefusedError on every rank, with the reasons by rank, if one cannot take part.
        """
        settings = settings or Settings()
        if transport is None:
            transport = ShmTransport(rank, pull=settings.delivery == "pull")
        steps = opening(rank, world, settings, transport)
        return cls(drive(steps, exchange, transport))

    @property
    def rank(self) -> int:
        """This rank."""
        return self._link.rank

    @property
    def world(self) -> int:
        """Number of ranks."""
        return self._link.layout.world

    def fits(self, nbytes: int, dtype: torch.dtype, algorithm: Algorithm | None = None) -> bool:
        """Say whether `all_reduce` takes this size: the same answer on every rank.

        bf16, fp16 or fp32, a positive multiple of 16 bytes, at most `max_reduce_bytes`, or
        `max_two_shot_bytes` where the algorithm is two-shot.
        """
        return self._calls.fits(nbytes, dtype, algorithm)

    def fits_gather(self, nbytes: int) -> bool:
        """Say whether `all_gather` takes shards of at most `nbytes` each."""
        return self._calls.fits_gather(nbytes)

    def fits_reduce_scatter(self, shape: Sequence[int], dtype: torch.dtype, dim: int = 0) -> bool:
        """Say whether `reduce_scatter` takes this shape: the same answer on every rank."""
        return self._calls.fits_scatter(shape, dtype, dim)

    def all_reduce(
        self,
        tensor: torch.Tensor,
        out: torch.Tensor | None = None,
        algorithm: Algorithm | None = None,
    ) -> torch.Tensor:
        """Sum over ranks 0..W-1 in that order, in fp32, rounded once; bit-equal on every rank.

        `tensor`: any shape that `fits`. `out`: None makes a new tensor, `tensor` itself works in
        place, any overlap is allowed. `algorithm`: the same on every rank; None goes by
        `two_shot_from`; no bit depends on it. Raises ValueError or TypeError for what does not
        fit, and CollectiveError once the group has failed.
        """
        self._usable()
        pending, result, target = self._calls.reduce(tensor, out, algorithm)
        self._run(pending)
        return target if result is target else target.copy_(result)

    def begin_all_reduce(
        self, tensor: torch.Tensor, out: torch.Tensor, algorithm: Algorithm | None = None
    ) -> Pending:
        """Start an all-reduce and return it unfinished; `out` must be contiguous."""
        if not out.is_contiguous():
            raise ValueError("out must be contiguous")
        self._usable()
        pending, _, _ = self._calls.reduce(tensor, out, algorithm)
        pending.begin()
        return pending

    def reduce_scatter(self, tensor: torch.Tensor, dim: int = 0) -> torch.Tensor:
        """Sum as `all_reduce` does and return this rank's part along the first or last dimension.

        Parts are whole 16-byte units, in rank order; the first ranks' are one step longer where
        they are not equal, and a part may be empty. Returns a new contiguous tensor. Raises as
        `all_reduce`.
        """
        self._usable()
        pending, result = self._calls.scatter(tensor, dim)
        self._run(pending)
        return result.contiguous()

    def begin_reduce_scatter(
        self, tensor: torch.Tensor, dim: int = 0
    ) -> tuple[Pending, torch.Tensor]:
        """Start a reduce-scatter; the tensor returned with it is valid once it is done."""
        self._usable()
        pending, result = self._calls.scatter(tensor, dim)
        pending.begin()
        return pending, result

    def all_gather(
        self, tensor: torch.Tensor, dim: int = 0, sizes: Sequence[int] | None = None
    ) -> torch.Tensor:
        """Concatenate every rank's shard along the first (0) or last (-1) dimension.

        `sizes`: every rank's extent along the last dimension, where shards differ; the same
        list on every rank. Returns a new contiguous tensor. Raises as `all_reduce`.
        """
        self._usable()
        pending, result = self._calls.gather(tensor, dim, sizes)
        self._run(pending)
        return result

    def begin_all_gather(
        self, tensor: torch.Tensor, dim: int = 0, sizes: Sequence[int] | None = None
    ) -> tuple[Pending, torch.Tensor]:
        """Start an all-gather; returns it unfinished, with the tensor it will fill."""
        self._usable()
        pending, result = self._calls.gather(tensor, dim, sizes)
        pending.begin()
        return pending, result

    def check(self, deadline_s: float, done: Callable[[], bool] | None = None) -> None:
        """Check the group before a step's results are used; returns or raises within the deadline.

        `done` says whether the step is over (an event's query); None: nothing is outstanding.
        Past the deadline the group fails, naming this rank. Raises CollectiveError.
        """
        self._refuse_closed()
        link = self._link
        start = link.transport.now()
        while True:
            link.supervisor.inspect()
            if not link.supervisor.settling:
                if done is None or done():
                    return
                if link.transport.now() - start > deadline_s:
                    words = f"the result was not ready {deadline_s:g} s after it was asked for"
                    link.supervisor.fail(Kind.LATE, link.rank, -1, words)
            link.transport.pause(0.001)

    def watchdog(self) -> Watchdog:
        """Return a watchdog for a thread of the caller's, which leaves it before `close`."""
        link = self._link
        return Watchdog(link.settings, link.transport, link.supervisor)

    def state(self) -> dict[str, Any]:
        """Return the state for a status command: JSON-able, never waits."""
        with self._releasing:
            return state_of(self._link, closed=self._closed)

    def close(self) -> dict[int, str]:
        """Say goodbye, wait at most `close_limit_s` for each living peer to do so, and release.

        Returns what became of each peer: "closed", "dead", "stopped" or "late". Never raises for
        a peer's sake; safe to call twice.
        """
        if self._closed:
            return {}
        link = self._link
        link.endpoint.set_phase(Phase.CLOSING)
        end = link.transport.now() + link.settings.close_limit_s
        peers = [peer for peer in range(self.world) if peer != self.rank]
        fates = {peer: self._fate(peer) for peer in peers}
        while "late" in fates.values() and link.transport.now() < end:
            if link.supervisor.root is not None:
                break
            link.transport.pause(0.001)
            fates = {peer: self._fate(peer) for peer in peers}
        with self._releasing:
            self._closed = True
            link.endpoint.close()
            link.transport.close()
        return fates

    def __enter__(self) -> "Group":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _fate(self, peer: int) -> str:
        seen = self._link.transport.seen(peer)
        if seen is not None and seen.phase == Phase.CLOSING:
            return "closed"
        life = self._link.transport.life(peer)
        return str(life) if life in (Life.DEAD, Life.STOPPED) else "late"

    def _refuse_closed(self) -> None:
        if self._closed:
            raise RuntimeError("the group is closed")

    def _usable(self) -> None:
        self._refuse_closed()
        if self._link.supervisor.settling:
            self.check(0.0)

    def _run(self, pending: Pending) -> None:
        if not self._lock.acquire(blocking=False):
            raise RuntimeError("two threads use this group at once")
        try:
            pending.run(self._link.settings.notice_s)
        finally:
            self._lock.release()
