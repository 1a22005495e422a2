"""One operation that has been started and not yet seen to be over."""

import torch

from tetraspark.collectives import native
from tetraspark.collectives.endpoint import Endpoint
from tetraspark.collectives.failure import CollectiveError, Kind
from tetraspark.collectives.supervisor import Supervisor
from tetraspark.collectives.transport import Transport


class Pending:
    """Step it until it is done; holds the tensors that the proxy reads and writes."""

    def __init__(
        self,
        endpoint: Endpoint,
        supervisor: Supervisor,
        transport: Transport,
        request: native.Request,
        tensors: tuple[torch.Tensor, torch.Tensor],
    ) -> None:
        self._endpoint = endpoint
        self._supervisor = supervisor
        self._transport = transport
        self._request = request
        self._tensors = tensors
        self._state = native.PENDING
        request.input = tensors[0].data_ptr()
        request.output = tensors[1].data_ptr()

    def begin(self) -> None:
        """Stage and post, without waiting. Raises RuntimeError while another one is pending."""
        self._state = self._endpoint.begin(self._request)
        self._refuse_busy()

    def step(self) -> bool:
        """Look once; True when the result is in place. Raises CollectiveError."""
        if self._state == native.PENDING:
            self._state = self._endpoint.poll()
        if self._state != native.DONE:
            self._supervisor.step(self._state)
            if self._supervisor.settling:
                self._state = native.ABORTED
        return self._state == native.DONE

    def run(self, slice_s: float) -> None:
        """Begin and wait to the end, supervised every `slice_s`. Raises CollectiveError."""
        nanoseconds = int(slice_s * 1e9)
        self._state = self._endpoint.run(self._request, nanoseconds)
        if self._state == native.DONE:
            return
        self._refuse_busy()
        try:
            while self._state != native.DONE:
                self._supervisor.step(self._state)
                if self._supervisor.settling:
                    # From here on the only way out is the error, whatever still arrives.
                    self._state = native.ABORTED
                    self._transport.pause(0.002)
                else:
                    self._state = self._endpoint.wait(nanoseconds)
        except CollectiveError:
            raise
        except BaseException as error:
            rank = self._endpoint.state.config.rank
            self._supervisor.fail(Kind.INTERRUPTED, rank, -1, f"stopped by {error!r}")
            raise

    def _refuse_busy(self) -> None:
        if self._state == native.BUSY:
            raise RuntimeError("another operation of this group is not over")
