"""Streams and events of torch, typed; torch leaves their constructors untyped."""

from typing import Protocol

import torch


class Event(Protocol):
    """What this package uses of torch.cuda.Event."""

    def record(self, stream: torch.cuda.Stream | None = None) -> None:
        """Mark the work enqueued so far on a stream, None: the current one."""

    def query(self) -> bool:
        """Say whether that work is over, without waiting."""


def new_event() -> Event:
    """Return an event without timing."""
    event: Event = torch.cuda.Event()  # type: ignore[no-untyped-call]  # untyped in torch
    return event


def new_stream(device: torch.device) -> torch.cuda.Stream:
    """Return a stream that no default stream waits for."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]  # untyped in torch
