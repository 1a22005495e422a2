"""Read, hash and write at the same time: each in its own thread, with a few buffers between."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Step = Callable[[Any], Any]
BUFFERS = 4


class Stage(threading.Thread):
    """Does one step with each thing it gets, in order, and hands on what comes of it.

    After an error it takes things without doing anything, so that nobody waits for it.
    """

    def __init__(self, step: Step, after: Stage | None = None) -> None:
        super().__init__(daemon=True)
        self.error: BaseException | None = None
        self._step, self._after = step, after
        self._waiting: queue.Queue[Any] = queue.Queue(BUFFERS)
        self.start()

    def put(self, thing: Any) -> None:
        """Hand in something. Raises the error that this stage or a later one ended with."""
        self.check()
        self._waiting.put(thing)

    def check(self) -> None:
        """Raise the error of this stage or a later one."""
        if self.error:
            raise self.error
        if self._after:
            self._after.check()

    def end(self) -> None:
        """Wait until everything is done."""
        self._waiting.put(None)
        self.join()
        if self._after:
            self._after.end()

    def run(self) -> None:
        """Work until there is nothing more."""
        while True:
            thing = self._waiting.get()
            if thing is None:
                return
            try:
                if self.error is None:
                    done = self._step(thing)
                    if self._after:
                        self._after.put(done)
            except BaseException as error:  # told to whoever puts or ends
                self.error = error


@contextmanager
def stages(*steps: Step) -> Iterator[Stage]:
    """Give the first of some stages; wait for all of them at the end, and raise their error."""
    first: Stage | None = None
    for step in reversed(steps):
        first = Stage(step, first)
    assert first is not None
    try:
        yield first
    finally:
        first.end()
    first.check()
