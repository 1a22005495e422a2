"""Posts what kernels staged: a C thread between a GPU and a transport that kernels do not reach."""

import atexit
import os

from tetraspark.collectives.endpoint import Endpoint
from tetraspark.collectives.library import proxy

SPIN_S = 0.01
"""Without a mark for longer it sleeps between looks: a decoding engine has its next sooner."""


class Relay:
    """Takes over the posting of an endpoint; the transport must be attached to it."""

    def __init__(self, endpoint: Endpoint, spin_s: float | None = None) -> None:
        """Open it; `spin_s` None: spin for `SPIN_S` where this process has a second core.

        Raises OSError when it cannot be made.
        """
        if spin_s is None:
            spin_s = SPIN_S if len(os.sched_getaffinity(0)) > 1 else 0.0
        self._library = proxy()
        self._handle = self._library.ts_relay_open(endpoint.handle(), int(spin_s * 1e9))
        if not self._handle:
            raise OSError("no relay: the transport posts no writes, or no memory")

    def start(self) -> None:
        """Look from a thread of its own from now on. Raises OSError when there can be none."""
        error = self._library.ts_relay_start(self._handle)
        if error:
            raise OSError(error, f"no thread for the relay: {os.strerror(error)}")
        # Before the interpreter unmaps what the thread reads.
        atexit.register(self.close)

    def step(self) -> int:
        """Look once, where no thread does; return how many stripes were posted."""
        return int(self._library.ts_relay_step(self._handle))

    def counts(self) -> dict[str, int]:
        """Return the stripes it posted, the times a lane had no room, and its naps."""
        if self._handle is None:
            return {}
        found = self._handle.contents
        return {"marks": found.marks, "stalls": found.stalls, "naps": found.naps}

    def close(self) -> None:
        """End the thread; no kernel may run. Safe to call twice."""
        if self._handle is not None:
            atexit.unregister(self.close)
            opened, self._handle = self._handle, None
            self._library.ts_relay_close(opened)
