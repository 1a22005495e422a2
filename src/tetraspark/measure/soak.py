"""Soak: waves of streams of code and prose beside a cold long prefill, for minutes or hours."""

import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from tetraspark.line.api import Api
from tetraspark.measure.corpus import Corpus
from tetraspark.measure.prompts import Kind, prompt
from tetraspark.measure.sized import Density
from tetraspark.measure.stream import GREEDY, SAMPLED, Trace, ask

KINDS: tuple[Kind, ...] = ("code", "prose")
Counters = Mapping[str, float]
"""Numbers that are read between waves: errors of lanes, free memory of nodes."""


@dataclass(frozen=True)
class SoakPlan:
    """How a soak runs: waves of `streams` requests, half of them greedy, beside a long prefill.

    `minutes` is when no new wave begins. In each wave one greedy prompt is asked twice.
    """

    minutes: float
    streams: int
    max_tokens: int
    prefill_tokens: int
    seed: int
    timeout: float


@dataclass(frozen=True)
class Wave:
    """What came of one wave. Seconds are since the soak began; rates are tokens a second."""

    number: int
    began: float
    seconds: float
    requests: int
    completion_tokens: int
    tokens_per_second: float
    prefill_tokens: int | None
    prefill_first_token_seconds: float | None
    errors: tuple[str, ...]
    repeats_equal: bool
    counters: Counters


@dataclass(frozen=True)
class SoakReport:
    """All waves. `error_counters` are those that may not grow.

    Two greedy answers to one prompt may differ where the engine's kernels choose by batch size:
    that is a fault with `equal_repeats` only, and told always.
    """

    waves: tuple[Wave, ...]
    error_counters: tuple[str, ...]
    equal_repeats: bool

    @property
    def growth(self) -> dict[str, float]:
        """How much each counter grew."""
        if not self.waves:
            return {}
        first, last = self.waves[0].counters, self.waves[-1].counters
        return {name: last[name] - first[name] for name in first if name in last}

    @property
    def differing(self) -> int:
        """In how many waves the two greedy answers to one prompt differed."""
        return sum(not wave.repeats_equal for wave in self.waves)

    @property
    def faults(self) -> tuple[str, ...]:
        """Every reason for which the soak did not pass."""
        found = [error for wave in self.waves for error in wave.errors]
        if self.equal_repeats and self.differing:
            found.append(f"{self.differing} times two greedy answers to one prompt differed")
        growth = self.growth
        found += [
            f"{name} grew by {growth[name]:g}" for name in self.error_counters if growth.get(name)
        ]
        return tuple(dict.fromkeys(found)) or (() if self.waves else ("no wave came to its end",))

    def as_dict(self) -> dict[str, Any]:
        """Return the fields and what follows from them, for a report."""
        rates = [wave.tokens_per_second for wave in self.waves]
        return {
            **asdict(self),
            "growth": self.growth,
            "differing_repeats": self.differing,
            "faults": self.faults,
            "requests": sum(wave.requests for wave in self.waves),
            "tokens_per_second": statistics.median(rates) if rates else None,
            "slowest": min(rates, default=None),
            "fastest": max(rates, default=None),
        }


def soak(
    api: Api,
    plan: SoakPlan,
    corpus: Corpus,
    density: Density,
    counters: Callable[[], Counters],
) -> Iterator[Wave]:
    """Yield wave after wave until the minutes are over; counters are read between them."""
    began = time.monotonic()
    for number in itertools.count():
        if number and time.monotonic() - began >= 60 * plan.minutes:
            return
        yield _wave(api, plan, corpus, density, number, began, counters)


def _wave(
    api: Api,
    plan: SoakPlan,
    corpus: Corpus,
    density: Density,
    number: int,
    began: float,
    counters: Callable[[], Counters],
) -> Wave:
    start = time.monotonic()
    seed = plan.seed * 1_000_003 + number
    long_text = corpus.text(density.characters(plan.prefill_tokens), 10_000_000 + seed)
    with ThreadPoolExecutor(plan.streams + 2) as pool:
        long = pool.submit(ask, api, long_text, 1, GREEDY, plan.timeout)
        streams = [pool.submit(_stream, api, plan, seed, index) for index in range(plan.streams)]
        # The same prompt as the first stream, which is greedy: the two must not differ.
        again = pool.submit(_stream, api, plan, seed, 0)
        traces = [one.result() for one in streams]
        repeat, prefill = again.result(), long.result()
    seconds = time.monotonic() - start
    everyone = [*traces, repeat, prefill]
    tokens = sum(trace.completion_tokens or 0 for trace in everyone)
    return Wave(
        number=number,
        began=start - began,
        seconds=seconds,
        requests=len(everyone),
        completion_tokens=tokens,
        tokens_per_second=tokens / seconds,
        prefill_tokens=prefill.prompt_tokens,
        prefill_first_token_seconds=(
            None if prefill.first is None else prefill.first - prefill.sent
        ),
        errors=tuple(f"wave {number}: {one.error}" for one in everyone if one.error),
        repeats_equal=traces[0].text == repeat.text or bool(traces[0].error or repeat.error),
        counters=dict(counters()),
    )


def _stream(api: Api, plan: SoakPlan, seed: int, index: int) -> Trace:
    text = prompt(KINDS[index % len(KINDS)], seed, index)
    sampling = SAMPLED if index // 2 % 2 else GREEDY
    return ask(api, text, plan.max_tokens, sampling, plan.timeout)
