"""Decode speed of a line with its transport on and off, and what it burns when idle."""

import os
import statistics
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from tetraspark.fleet.process import split_stat
from tetraspark.line.api import Api
from tetraspark.site.collectives import Collectives
from tetraspark.site.load import LoadedSite

Transport = Literal["off", "shm"]
IDLE_SECONDS = 3.0
PROMPT = "Tell me a story about a fox and a lighthouse."  # Answered at length by any model.


@dataclass(frozen=True)
class Sample:
    """One served line: tokens a second of each request, and the cores used while idle."""

    transport: Transport
    tokens_per_second: tuple[float, ...]
    idle_cores: float


@dataclass(frozen=True)
class TransportReport:
    """Samples of both transports; describes the machine they were taken on."""

    line: str
    ranks: int
    cores: int
    max_tokens: int
    samples: tuple[Sample, ...]

    def speed(self, transport: Transport) -> float:
        """Return the median tokens a second of all requests with a transport."""
        return statistics.median(
            value
            for sample in self.samples
            if sample.transport == transport
            for value in sample.tokens_per_second
        )

    def idle(self, transport: Transport) -> float:
        """Return the median number of cores that the idle line used with a transport."""
        return statistics.median(
            sample.idle_cores for sample in self.samples if sample.transport == transport
        )

    @property
    def ratio(self) -> float:
        """Decode speed with the transport on, over that with it off."""
        return self.speed("shm") / self.speed("off")

    def as_dict(self) -> dict[str, object]:
        """Return the report as JSON-able values."""
        medians = {
            name: {"tokens_per_second": self.speed(name), "idle_cores": self.idle(name)}
            for name in ("shm", "off")
        }
        return {**asdict(self), "medians": medians, "ratio": self.ratio}


def with_transport(loaded: LoadedSite, transport: Transport) -> LoadedSite:
    """Return the site with another transport, its limits kept."""
    section = loaded.site.collectives or Collectives(transport=transport)
    section = section.model_copy(update={"transport": transport})
    return replace(loaded, site=loaded.site.model_copy(update={"collectives": section}))


def decode_speed(api: Api, requests: int, max_tokens: int, timeout: float) -> tuple[float, ...]:
    """Return tokens a second of each of `requests` greedy requests, one after the other.

    The first is a warm-up and dropped. Tokens are those the engine counted; the time includes
    the prefill of a few tokens.
    """
    speeds = []
    for number in range(requests + 1):
        started = time.monotonic()
        answer = api.chat(f"Request {number}: {PROMPT}", max_tokens, timeout)
        speeds.append(answer.completion_tokens / (time.monotonic() - started))
    return tuple(speeds[1:])


def idle_cores(pids: Iterable[int], seconds: float = IDLE_SECONDS) -> float:
    """Return how many cores these processes keep busy while nobody asks for anything."""
    pids = tuple(pids)
    before, started = _cpu_seconds(pids), time.monotonic()
    time.sleep(seconds)
    return (_cpu_seconds(pids) - before) / (time.monotonic() - started)


def _cpu_seconds(pids: Iterable[int]) -> float:
    """Sum user and system time; fields 14 and 15 of /proc/PID/stat, see proc(5)."""
    ticks = 0
    for pid in pids:
        _, fields = split_stat(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8"))
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
