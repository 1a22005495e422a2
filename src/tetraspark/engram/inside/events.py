"""What the program tells whoever started it: one JSON object a line on stdout."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

EVERY_SECONDS = 0.5


def tell(event: str, **more: Any) -> None:
    """Print an event. A reader that has gone ends the program: what is packed stays."""
    sys.stdout.write(json.dumps({"event": event, **more}) + "\n")
    sys.stdout.flush()


class Meter:
    """Tells how far a shard is, at most twice a second and at its end; in bytes of the shard."""

    def __init__(self, shard: str, what: str, total: int) -> None:
        self._words = {"shard": shard, "what": what, "total": total}
        self._total, self._last = total, 0.0

    def at(self, done: int) -> None:
        """Tell, if it is time."""
        now = time.monotonic()
        if done == self._total or now - self._last >= EVERY_SECONDS:
            self._last = now
            tell("progress", **self._words, done=done)
