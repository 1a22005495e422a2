"""A view of work that goes on: a table that is renewed on a terminal, lines elsewhere."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from rich.live import Live
from rich.table import Table

from tetraspark.cli.output import err


class LiveView(ABC):
    """Shows a table on stderr meanwhile. What it shows may come from several threads."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._lock = threading.Lock()

    @abstractmethod
    def table(self) -> Table:
        """Return the table as it is now."""

    def _timed(self) -> Table:
        table = self.table()
        table.caption = f"{time.monotonic() - self._begun:.0f} s"
        return table

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the table meanwhile, on a terminal."""
        if not err.is_terminal:
            yield
            return
        with Live(console=err, get_renderable=self._timed, transient=True):
            yield
