"""The events of a streamed answer, with limits on what a server may send."""

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx

MOST_BYTES = 16 * 2**20
"""Of one event: a server that never ends its line may not fill the memory."""


def events(response: httpx.Response, until: float) -> Iterator[dict[str, Any]]:
    """Yield the data of every event up to `[DONE]`.

    Raises ValueError for what is no JSON object, for an event beyond `MOST_BYTES`, and at `until`
    (monotonic seconds), whatever still comes.
    """
    rest = b""
    for chunk in _chunks(response, until):
        # By line feeds alone: a text may hold the other ends of lines that Unicode knows.
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > MOST_BYTES:
            raise ValueError(f"an event of more than {MOST_BYTES} bytes")
        for line in lines:
            payload = line.removeprefix(b"data:").strip()
            if not line.startswith(b"data:") or not payload:
                continue
            if payload == b"[DONE]":
                return
            yield _object(payload)


def beginning(response: httpx.Response, until: float, characters: int = 400) -> str:
    """Return how an answer that is no stream begins."""
    found = b""
    for chunk in _chunks(response, until):
        found += chunk
        if len(found) >= characters:
            break
    return found[:characters].decode(errors="replace")


def _chunks(response: httpx.Response, until: float) -> Iterator[bytes]:
    for chunk in response.iter_bytes():
        if time.monotonic() > until:
            raise ValueError("the answer does not end: the request's time is over")
        yield chunk


def _object(payload: bytes) -> dict[str, Any]:
    try:
        data = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"an event that is no JSON: {payload[:60]!r}") from error
    if not isinstance(data, dict):
        raise ValueError(f"an event that is no object: {payload[:60]!r}")
    return data
