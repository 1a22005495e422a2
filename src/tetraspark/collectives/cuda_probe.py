"""The kernels' own proof before "ready": a pattern through every slot, read and written by them."""

from collections.abc import Generator

import torch

from tetraspark.collectives import native
from tetraspark.collectives.cuda_events import new_event, new_stream
from tetraspark.collectives.cuda_link import CudaLink
from tetraspark.collectives.flags import Op, next_sequence
from tetraspark.collectives.layout import Layout
from tetraspark.collectives.proof import Probe
from tetraspark.collectives.requests import probe_request


def probe_bytes(layout: Layout, op: Op) -> int:
    """Return the bytes of each rank's part of a probe: all that a slot of its area holds."""
    return {
        Op.PROBE: layout.reduce_bytes,
        Op.PROBE_GATHER: layout.gather_bytes,
        Op.PROBE_CHUNK: layout.chunk_bytes,
    }[op]


class Prober:
    """Buffers for the probes of one rank.

    Made before any rank launches: with several ranks on one GPU an allocation may wait for a
    kernel that waits for the allocating rank.
    """

    def __init__(self, found: CudaLink) -> None:
        layout = found.link.layout
        largest = max(layout.reduce_bytes, layout.gather_bytes, layout.chunk_bytes)
        self._found = found
        self._stream = new_stream(found.device)
        self._done = new_event()
        with torch.cuda.device(found.device), torch.cuda.stream(self._stream):
            size = layout.world * largest
            self._source = torch.empty(size, dtype=torch.uint8, device=found.device)
            self._result = torch.empty(size, dtype=torch.uint8, device=found.device)
            self._done.record(self._stream)
        self._stream.synchronize()

    def run(self, op: Op, nonce: bytes) -> Generator[None, None, str]:
        """Run one probe, yielding while it waits; return "" or what was wrong.

        Raises CollectiveError if a peer never answers.
        """
        link, endpoint = self._found.link, self._found.endpoint
        nbytes, world = probe_bytes(link.layout, op), link.layout.world
        endpoint.poll()
        probe = Probe(op, nbytes, world, nonce, next_sequence(endpoint.sequence))
        self._launch(op, nbytes, probe.sent(link.rank))
        while not self._done.query():
            link.supervisor.step(endpoint.poll())
            yield
        state = endpoint.poll()
        while state != native.DONE:
            link.supervisor.step(state)
            yield
            state = endpoint.poll()
        seen = self._result[: world * nbytes].cpu().numpy().tobytes()
        for peer in range(world):
            # Its own chunk no rank sends: the kernel reads it where it is.
            if seen[peer * nbytes : (peer + 1) * nbytes] != probe.part(peer, link.rank):
                return f"the GPU got the pattern of rank {peer} damaged ({op.name})"
        return ""

    def _launch(self, op: Op, nbytes: int, sent: bytes) -> None:
        found = self._found
        request = probe_request(op, found.link.layout.world, nbytes)
        request.input, request.output = self._source.data_ptr(), self._result.data_ptr()
        with torch.cuda.device(found.device), torch.cuda.stream(self._stream):
            payload = torch.frombuffer(bytearray(sent), dtype=torch.uint8)
            self._source[: len(sent)].copy_(payload)
            found.launcher.launch(request, self._stream.cuda_stream)
            self._done.record(self._stream)
