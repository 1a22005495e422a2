"""Streams and events of torch, with the types that torch leaves out."""

from typing import Any, Protocol

import torch


class Event(Protocol):
    """What this package uses of torch.cuda.Event."""

    def record(self, stream: torch.cuda.Stream | None = None) -> None:
        """Mark the work enqueued so far on a stream, None: the current one."""

    def query(self) -> bool:
        """Say whether that work is over, without waiting."""

    def synchronize(self) -> None:
        """Wait for that work."""

    def elapsed_time(self, end_event: Any) -> float:
        """Return the milliseconds from this event to a later one, both made with timing."""


def new_event(*, timing: bool = False) -> Event:
    """Return an event, with a time stamp if `timing`."""
    event: Event = torch.cuda.Event(enable_timing=timing)
    return event


def new_stream(device: torch.device) -> torch.cuda.Stream:
    """Return a stream that no default stream waits for."""
    return torch.cuda.Stream(device)
