"""The kernels' own proof before "ready": a pattern through every slot, read and written by them."""

from collections.abc import Generator

import torch

from tetraspark.collectives import native
from tetraspark.collectives.cuda_events import new_event, new_stream
from tetraspark.collectives.cuda_link import CudaLink
from tetraspark.collectives.flags import Op, next_sequence
from tetraspark.collectives.proof import pattern
from tetraspark.collectives.requests import probe_request


class Probe:
    """Buffers for the probes of one rank.

    Made before any rank launches: with several ranks on one GPU an allocation may wait for a
    kernel that waits for the allocating rank.
    """

    def __init__(self, found: CudaLink) -> None:
        layout = found.link.layout
        largest = max(layout.reduce_bytes, layout.gather_bytes)
        self._found = found
        self._stream = new_stream(found.device)
        self._done = new_event()
        with torch.cuda.device(found.device), torch.cuda.stream(self._stream):
            self._source = torch.empty(largest, dtype=torch.uint8, device=found.device)
            self._result = torch.empty(
                layout.world * largest, dtype=torch.uint8, device=found.device
            )
            self._done.record(self._stream)
        self._stream.synchronize()

    def run(self, op: Op, nonce: bytes) -> Generator[None, None, str]:
        """Run one probe, yielding while it waits; return "" or what was wrong.

        Raises CollectiveError if a peer never answers.
        """
        link, endpoint = self._found.link, self._found.endpoint
        nbytes = link.layout.reduce_bytes if op is Op.PROBE else link.layout.gather_bytes
        endpoint.poll()
        sequence = next_sequence(endpoint.sequence)
        self._launch(op, pattern(nonce, link.rank, sequence, nbytes))
        while not self._done.query():
            link.supervisor.step(endpoint.poll())
            yield
        state = endpoint.poll()
        while state != native.DONE:
            link.supervisor.step(state)
            yield
            state = endpoint.poll()
        seen = self._result[: link.layout.world * nbytes].cpu().numpy().tobytes()
        for peer in range(link.layout.world):
            wanted = pattern(nonce, peer, sequence, nbytes)
            if seen[peer * nbytes : (peer + 1) * nbytes] != wanted:
                return f"the GPU got the pattern of rank {peer} damaged ({op.name})"
        return ""

    def _launch(self, op: Op, sent: bytes) -> None:
        found = self._found
        request = probe_request(op, found.link.layout.world, len(sent))
        request.input, request.output = self._source.data_ptr(), self._result.data_ptr()
        with torch.cuda.device(found.device), torch.cuda.stream(self._stream):
            payload = torch.frombuffer(bytearray(sent), dtype=torch.uint8)
            self._source[: len(sent)].copy_(payload)
            found.launcher.launch(request, self._stream.cuda_stream)
            self._done.record(self._stream)
