"""Looks at a group from a thread of its own, for a rank that waits where no operation of ours is.

Such a rank (in a broadcast of the engine's own group, say) runs no supervisor: it would neither
hear what the others found nor see that the process it waits for is stopped.
"""

from tetraspark.collectives.failure import Failure, Kind
from tetraspark.collectives.liveness import Life
from tetraspark.collectives.settings import Settings
from tetraspark.collectives.supervisor import Supervisor
from tetraspark.collectives.transport import Transport

PERIOD_S = 0.5
"""Between two looks; the caller's thread sleeps it."""
GAP_S = 2.0
"""A longer time between looks means that this process did not run: what it saw before is void."""


class Watchdog:
    """Fails the group for a peer that is stopped for `freeze_limit_s`; hears of every failure."""

    def __init__(self, settings: Settings, transport: Transport, supervisor: Supervisor) -> None:
        self._limit_s = settings.freeze_limit_s
        self._transport = transport
        self._supervisor = supervisor
        self._looked = transport.now()
        self._stopped_since: dict[int, float] = {}

    def look(self) -> Failure | None:
        """Look once; return the root once the group has failed and the ranks have settled it."""
        now = self._transport.now()
        if now - self._looked > GAP_S:
            self._stopped_since.clear()
        self._looked = now
        for peer in self._supervisor.late:
            self._look_at(peer, now)
        return self._supervisor.heard()

    def _look_at(self, peer: int, now: float) -> None:
        if self._transport.life(peer) is not Life.STOPPED:
            self._stopped_since.pop(peer, None)
            return
        stopped_s = now - self._stopped_since.setdefault(peer, now)
        if stopped_s >= self._limit_s:
            self._supervisor.fail(
                Kind.FROZEN, peer, -1, f"its process is stopped ({stopped_s:.1f} s)"
            )
