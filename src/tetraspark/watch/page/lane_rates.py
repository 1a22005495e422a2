"""Bytes a second of every lane: the difference of two looks, since lanes count totals."""

import threading

from tetraspark.watch.observation import Observation

Lane = tuple[int, int, int]
"""Rank, peer and number of a lane: its sending end."""


class LaneRates:
    """Keeps the newest look and what each lane did since the one before it; any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: Observation | None = None
        self._rates: dict[Lane, float] = {}

    def look(self, seen: Observation | None) -> dict[Lane, float]:
        """Take the newest observation; return bytes a second of each lane where that is known.

        A lane has none at its first look, nor after its counter fell or the run changed. Asking
        again about the same observation changes nothing.
        """
        with self._lock:
            if seen is not None and seen is not self._last:
                self._rates = _between(self._last, seen) if self._last else {}
                self._last = seen
            return self._rates


def _between(first: Observation, second: Observation) -> dict[Lane, float]:
    seconds = second.at - first.at
    if (first.line, first.run) != (second.line, second.run) or seconds <= 0:
        return {}
    before, after = _totals(first), _totals(second)
    return {
        lane: (total - before[lane]) / seconds
        for lane, total in after.items()
        if lane in before and total >= before[lane]
    }


def _totals(seen: Observation) -> dict[Lane, int]:
    return {
        (one.rank, lane.peer, lane.lane): lane.bytes for one in seen.ranks for lane in one.lanes
    }
