"""The newest observation, for those who show it while others look."""

import threading

from tetraspark.watch.observation import Observation


class Board:
    """Holds the newest observation; any thread may post and read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest: Observation | None = None

    def post(self, observation: Observation) -> None:
        """Put an observation in the place of the one before."""
        with self._lock:
            self._latest = observation

    def latest(self) -> Observation | None:
        """Return the newest observation, or None before the first."""
        with self._lock:
            return self._latest
