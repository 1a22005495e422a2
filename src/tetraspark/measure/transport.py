"""Speed of a line with its transport on and off, and what it burns when idle."""

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

Transport = Literal["shm", "one-shot", "off"]
"""`shm` as the site has it; `one-shot` the same without two-shot; `off` is the engine's own."""
IDLE_SECONDS = 3.0
PROMPT = "Tell me a story about a fox and a lighthouse."  # Answered at length by any model.


@dataclass(frozen=True)
class Sample:
    """One served line: tokens a second of each request, and the cores used while idle.

    `prefill_tokens_per_second`: prompt tokens over the time of a request for one token.
    `answer`: the greedy answer to a prompt of that length, the same prompt in every sample.
    """

    transport: Transport
    tokens_per_second: tuple[float, ...]
    prefill_tokens_per_second: tuple[float, ...]
    idle_cores: float
    answer: str


@dataclass(frozen=True)
class TransportReport:
    """Samples of each transport; describes the machine they were taken on."""

    line: str
    ranks: int
    cores: int
    max_tokens: int
    samples: tuple[Sample, ...]

    @property
    def transports(self) -> tuple[Transport, ...]:
        """Return the transports that were measured."""
        return tuple(dict.fromkeys(sample.transport for sample in self.samples))

    def speed(self, transport: Transport) -> float:
        """Return the median tokens a second of all requests with a transport."""
        return statistics.median(
            value for sample in self._of(transport) for value in sample.tokens_per_second
        )

    def prefill(self, transport: Transport) -> float:
        """Return the median prompt tokens a second of all prefills with a transport."""
        return statistics.median(
            value for sample in self._of(transport) for value in sample.prefill_tokens_per_second
        )

    def idle(self, transport: Transport) -> float:
        """Return the median number of cores that the idle line used with a transport."""
        return statistics.median(sample.idle_cores for sample in self._of(transport))

    def _of(self, transport: Transport) -> list[Sample]:
        return [sample for sample in self.samples if sample.transport == transport]

    @property
    def ratio(self) -> float:
        """Decode speed with the transport on, over that with it off."""
        return self.speed("shm") / self.speed("off")

    @property
    def prefill_ratios(self) -> dict[Transport, float]:
        """Prefill speed with the transport on, over that with each other one."""
        others = [one for one in self.transports if one != "shm"]
        return {one: self.prefill("shm") / self.prefill(one) for one in others}

    @property
    def same_answer(self) -> bool:
        """Whether every sample gave the same text."""
        return len({sample.answer for sample in self.samples}) == 1

    def as_dict(self) -> dict[str, object]:
        """Return the report as JSON-able values."""
        medians = {
            name: {
                "tokens_per_second": self.speed(name),
                "prefill_tokens_per_second": self.prefill(name),
                "idle_cores": self.idle(name),
            }
            for name in self.transports
        }
        return {
            **asdict(self),
            "medians": medians,
            "ratio": self.ratio,
            "prefill_ratios": self.prefill_ratios,
            "same_answer": self.same_answer,
        }


def transports_of(loaded: LoadedSite) -> tuple[Transport, ...]:
    """Return what there is to compare: one-shot apart only where the site has two-shot too."""
    section = loaded.site.collectives
    two_shot = section is not None and section.max_two_shot_bytes is not None
    return ("shm", "one-shot", "off") if two_shot else ("shm", "off")


def with_transport(loaded: LoadedSite, transport: Transport) -> LoadedSite:
    """Return the site with another transport, its limits kept."""
    kind: Literal["off", "shm"] = "off" if transport == "off" else "shm"
    section = loaded.site.collectives or Collectives(transport=kind)
    changed: dict[str, object] = {"transport": kind}
    if transport == "one-shot":
        changed |= {"max_two_shot_bytes": None, "two_shot_from": None}
    section = section.model_copy(update=changed)
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


def prefill_speed(api: Api, requests: int, characters: int, timeout: float) -> tuple[float, ...]:
    """Return prompt tokens a second of each of `requests` prompts, each answered by one token.

    The first is a warm-up and dropped; no prompt begins like another.
    """
    speeds = []
    for number in range(requests + 1):
        started = time.monotonic()
        answer = api.chat(reading(number, characters), 1, timeout)
        speeds.append(answer.prompt_tokens / (time.monotonic() - started))
    return tuple(speeds[1:])


def reading(number: int, characters: int) -> str:
    """Return a prompt of so many characters, of its own from the first words on."""
    story = " ".join(f"{line}. {PROMPT}" for line in range(characters // len(PROMPT) + 1))
    return f"Reading {number}: {story}"[:characters]


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
