"""The collectives of one group of ranks, for tensors of one GPU; safe in CUDA graphs."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch

from tetraspark.collectives import native
from tetraspark.collectives.algorithm import Algorithm
from tetraspark.collectives.cuda_events import new_event
from tetraspark.collectives.cuda_link import CudaLink
from tetraspark.collectives.cuda_opening import cuda_opening
from tetraspark.collectives.cuda_requests import Requests
from tetraspark.collectives.cuda_two_shot import gather_of
from tetraspark.collectives.cuda_watch import Watch
from tetraspark.collectives.failure import CollectiveError
from tetraspark.collectives.flags import Op
from tetraspark.collectives.group import Group
from tetraspark.collectives.opening import Exchange, drive
from tetraspark.collectives.settings import Settings
from tetraspark.collectives.shm import ShmTransport
from tetraspark.collectives.transport import Transport
from tetraspark.collectives.watchdog import Watchdog

CLOSE_LIMIT_S = 2.0


class CudaGroup:
    """All ranks must run the same operations with the same shapes in the same order.

    Calls enqueue one kernel, two-shot two, on the current stream and return at once. A captured
    graph may be replayed any number of times and in any order of graphs, the same on every rank,
    always on one stream; eager calls of another stream are ordered after the last one's. A
    difference between ranks, a dead peer or an expired limit poisons the group: kernels still
    queued do nothing, and `check` raises the same root on every rank.
    """

    def __init__(self, found: CudaLink) -> None:
        self._found = found
        self._host = Group(found.link)
        self._requests = Requests(found.link.layout, found.link.rank, found.device)
        self._watch = Watch(found)
        self._calls = threading.Lock()
        self._stream: torch.cuda.Stream | None = None
        self._closed = False
        self._watch.start()

    @classmethod
    def open(
        cls,
        rank: int,
        world: int,
        exchange: Exchange,
        device: torch.device,
        settings: Settings | None = None,
        transport: Transport | None = None,
    ) -> "CudaGroup":
        """Vote, connect, pin, compile, and prove every slot with the GPU itself.

        `exchange` all-gathers bytes in rank order. `transport` None is shared memory. Raises
        RefusedError on every rank, with the reasons by rank, if one cannot take part.
        """
        settings = settings or Settings()
        if transport is None:
            transport = ShmTransport(rank, pull=settings.delivery == "pull")
        steps = cuda_opening(rank, world, settings, transport, device)
        return cls(drive(steps, exchange, transport))

    @property
    def rank(self) -> int:
        """This rank."""
        return self._host.rank

    @property
    def world(self) -> int:
        """Number of ranks."""
        return self._host.world

    def fits(self, nbytes: int, dtype: torch.dtype, algorithm: Algorithm | None = None) -> bool:
        """Say whether `all_reduce` takes this size: the same answer on every rank.

        bf16, fp16 or fp32, a positive multiple of 16 bytes, at most `max_reduce_bytes`, or
        `max_two_shot_bytes` where the algorithm is two-shot.
        """
        return self._requests.fits(nbytes, dtype, self._algorithm(nbytes, algorithm))

    def fits_gather(self, nbytes: int) -> bool:
        """Say whether `all_gather` takes shards of at most `nbytes` each."""
        return self._host.fits_gather(nbytes)

    def fits_reduce_scatter(self, shape: Sequence[int], dtype: torch.dtype, dim: int = 0) -> bool:
        """Say whether `reduce_scatter` takes this shape: the same answer on every rank."""
        return self._requests.fits_scatter(shape, dtype, dim)

    def all_reduce(
        self,
        tensor: torch.Tensor,
        out: torch.Tensor | None = None,
        algorithm: Algorithm | None = None,
    ) -> torch.Tensor:
        """Sum over ranks 0..W-1 in that order, in fp32, rounded once; bit-equal on every rank.

        `tensor`: any shape that `fits`, on the group's device. `out`: None makes a new tensor,
        `tensor` itself works in place, any overlap is allowed. `algorithm`: the same on every
        rank; None goes by `two_shot_from`; no bit depends on it. Raises ValueError or TypeError
        for what does not fit, CollectiveError once the group has failed.
        """
        self._usable()
        chosen = self._algorithm(tensor.nbytes, algorithm)
        request, _source, result = self._requests.reduce(tensor, out, chosen)
        if chosen is Algorithm.TWO_SHOT:
            self._launch(request, gather_of(request, self.rank))
        else:
            self._launch(request)
        target = result if out is None else out
        return target if result is target else target.copy_(result)

    def reduce_scatter(self, tensor: torch.Tensor, dim: int = 0) -> torch.Tensor:
        """Sum as `all_reduce` does and return this rank's part along the first or last dimension.

        Parts are whole 16-byte units, in rank order; the first ranks' are one step longer where
        they are not equal, and a part may be empty. Returns a new contiguous tensor. Raises as
        `all_reduce`.
        """
        self._usable()
        request, _source, result = self._requests.scatter(tensor, dim)
        self._launch(request)
        last = request.op == Op.REDUCE_SCATTER_LAST
        return result.movedim(0, -1).contiguous() if last else result

    def all_gather(
        self, tensor: torch.Tensor, dim: int = 0, sizes: Sequence[int] | None = None
    ) -> torch.Tensor:
        """Concatenate every rank's shard along the first (0) or last (-1) dimension.

        `sizes`: every rank's extent along the last dimension, where shards differ; the same
        list on every rank. Returns a new contiguous tensor. Raises as `all_reduce`.
        """
        self._usable()
        request, _source, result = self._requests.gather(tensor, dim, sizes)
        self._launch(request)
        return result

    def check(self, deadline_s: float, done: Callable[[], bool] | None = None) -> None:
        """Check the group before results are used; returns or raises within the deadline.

        `done` says whether the step is over: the `query` of an event recorded after it. None:
        only look. Past the deadline the group fails, naming this rank; about `settle_s` later
        this raises CollectiveError, with the root that all ranks agree on.
        """
        self._open()
        self._watch.check(deadline_s, done)

    def watchdog(self) -> Watchdog:
        """Return a watchdog for a thread of the caller's, which leaves it before `close`."""
        return self._host.watchdog()

    def state(self) -> dict[str, Any]:
        """Return the state for a status command: JSON-able, never waits for the GPU."""
        if not self._closed:
            with self._watch.lock:
                self._found.endpoint.poll()
        relay = self._found.relay
        own = {"device": str(self._found.device)} | ({"relay": relay.counts()} if relay else {})
        return self._host.state() | own

    def close(self) -> dict[int, str]:
        """Stop the watch, end what still runs, and say goodbye; returns each peer's fate.

        Never blocks for ever. If this GPU does not come to rest within seconds of the abort,
        its memory stays pinned until the process ends.
        """
        if self._closed:
            return {}
        self._closed = True
        self._watch.stop()
        rested = self._rest()
        if rested:
            self._found.release()
            return self._host.close()
        return {peer: "late" for peer in range(self.world) if peer != self.rank}

    def __enter__(self) -> "CudaGroup":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> None:
        if self._closed:
            raise RuntimeError("the group is closed")

    def _usable(self) -> None:
        self._open()
        root = self._found.link.supervisor.root
        if root is not None:
            raise CollectiveError(root, self.rank)

    def _algorithm(self, nbytes: int, chosen: Algorithm | None) -> Algorithm:
        # A plain "two-shot" is taken as well, another word refused.
        return Algorithm(chosen or self._found.link.settings.algorithm_for(nbytes))

    def _launch(self, *requests: native.Request) -> None:
        if not self._calls.acquire(blocking=False):
            raise RuntimeError("two threads use this group at once")
        try:
            stream = torch.cuda.current_stream(self._found.device)
            if not torch.cuda.is_current_stream_capturing():
                if self._stream is not None and self._stream != stream:
                    stream.wait_stream(self._stream)
                self._stream = stream
            for request in requests:
                self._found.launcher.launch(request, stream.cuda_stream)
        finally:
            self._calls.release()

    def _rest(self) -> bool:
        """Wait for this rank's kernels, at first patiently, then with the abort word raised."""
        transport, endpoint = self._found.link.transport, self._found.endpoint
        done = new_event()
        with torch.cuda.device(self._found.device):
            done.record(self._stream or torch.cuda.current_stream())
        for attempt in range(2):
            end = transport.now() + CLOSE_LIMIT_S
            while transport.now() < end:
                if done.query() and (endpoint.poll() != native.PENDING or endpoint.verdict):
                    return True
                transport.pause(0.001)
            if attempt == 0:
                endpoint.abort_own()
        return False
