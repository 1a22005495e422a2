"""Watches the kernels of one rank, from a thread and at every result boundary."""

import logging
import threading
from collections.abc import Callable

from tetraspark.collectives import native
from tetraspark.collectives.cuda_link import CudaLink
from tetraspark.collectives.cuda_state import ABORTED, DEADLINE
from tetraspark.collectives.failure import CollectiveError, Kind

log = logging.getLogger(__name__)

IDLE_PERIOD_S = 0.5
"""Between looks while nothing is in flight: a rank that only waits burns no core."""
BOUNDARY_PAUSE_S = 50e-6


class Watch:
    """Runs the supervisor over what the kernels publish; the first error it meets stays.

    The thread is there because an engine may wait for its GPU without asking `check`: a verdict
    still reaches all ranks, ends their kernels, and so the wait.
    """

    def __init__(self, found: CudaLink) -> None:
        self.lock = threading.Lock()
        self._found = found
        self._stop = threading.Event()
        self._error: CollectiveError | None = None
        self._aborted_at: float | None = None
        self._thread = threading.Thread(target=self._run, name="collectives-watch", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; returns once it has left."""
        self._stop.set()
        self._thread.join()

    def check(self, deadline_s: float, done: Callable[[], bool] | None) -> None:
        """Return once `done`, if nothing is wrong, else raise CollectiveError."""
        transport, notice_s = self._found.link.transport, self._found.link.settings.notice_s
        start = looked = transport.now()
        while True:
            finished, sound = done is None or done(), self._sound()
            if finished and sound:
                return
            now = transport.now()
            if not sound or now - looked >= notice_s:
                looked = now
                self.look()
            if now - start > deadline_s:
                self._expire(deadline_s, finished=finished)
            transport.pause(BOUNDARY_PAUSE_S)

    def look(self) -> None:
        """Let the supervisor look once. Raises CollectiveError once the group has failed."""
        link, endpoint = self._found.link, self._found.endpoint
        with self.lock:
            if self._error is not None:
                raise self._error
            try:
                state = endpoint.poll()
                if not link.supervisor.settling:
                    self._device_verdict(link.transport.now())
                if state == native.DONE:
                    link.supervisor.inspect()
                else:
                    link.supervisor.step(state)
            except CollectiveError as error:
                endpoint.abort_own()
                self._error = error
                raise

    def _sound(self) -> bool:
        """Say whether a finished step may be used: nothing reported, no abort, no verdict."""
        link, endpoint = self._found.link, self._found.endpoint
        return not (
            self._error is not None
            or link.supervisor.settling
            or endpoint.verdict
            or endpoint.aborted
        )

    def _expire(self, deadline_s: float, *, finished: bool) -> None:
        link = self._found.link
        with self.lock:
            self._found.endpoint.poll()
            words = f"the result was not ready {deadline_s:g} s after it was asked for"
            if finished:
                words = "its kernels were aborted and no rank left a reason"
            kind = Kind.INTERRUPTED if finished else Kind.LATE
            link.supervisor.fail(kind, link.rank, -1, words)

    def _device_verdict(self, now: float) -> None:
        """Turn what the device decided alone into the group's finding."""
        link, endpoint = self._found.link, self._found.endpoint
        if endpoint.verdict == DEADLINE:
            peer, lane, waited_s = endpoint.late_peer()
            words = f"the GPU waited {waited_s:.1f} s for it and gave up"
            link.supervisor.fail(Kind.LATE, peer, lane, words)
        elif endpoint.verdict == ABORTED:
            if self._aborted_at is None:
                self._aborted_at = now
            elif now - self._aborted_at > link.settings.settle_s:
                words = "its kernels were aborted and no rank left a reason"
                link.supervisor.fail(Kind.INTERRUPTED, link.rank, -1, words)

    def _run(self) -> None:
        busy_s = self._found.link.settings.notice_s
        period_s = IDLE_PERIOD_S
        while not self._stop.wait(period_s):
            try:
                self.look()
            except CollectiveError as error:
                log.error("%s", error)
                return
            state = self._found.endpoint.state
            active = state.pending or self._found.link.supervisor.settling
            period_s = busy_s if active or not self._sound() else IDLE_PERIOD_S
