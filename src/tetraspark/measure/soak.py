"""Soak: waves of streams of code and prose beside a cold long prefill, for minutes or hours."""

import itertools
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from tetraspark.line.api import Api
from tetraspark.measure.corpus import Corpus
from tetraspark.measure.prompts import Kind, prompt
from tetraspark.measure.sized import Density
from tetraspark.measure.stream import GREEDY, SAMPLED, Trace, ask

KINDS: tuple[Kind, ...] = ("code", "prose")
Counters = Mapping[str, float]
"""Numbers that are read before, between and after waves: errors of lanes, free memory of nodes."""
FAILED_WAVES = 3
"""After so many waves in a row in which every request failed, a soak ends."""


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

    @property
    def failed(self) -> bool:
        """Whether every request failed."""
        return len(self.errors) == self.requests


@dataclass(frozen=True)
class SoakReport:
    """All waves. `before` was read ahead of them; `error_counters` are those that may not grow.

    Two greedy answers to one prompt may differ where the engine's kernels choose by batch size:
    that is a fault with `equal_repeats` only, and told always.
    """

    waves: tuple[Wave, ...]
    before: Counters
    error_counters: tuple[str, ...]
    equal_repeats: bool

    @property
    def growth(self) -> dict[str, float]:
        """How much each counter grew; one that was not there before began at 0."""
        last = self.waves[-1].counters if self.waves else self.before
        return {name: last[name] - self.before.get(name, 0.0) for name in last}

    @property
    def restarted(self) -> tuple[str, ...]:
        """What is odd about error counters: one that vanishes or falls hides what it counted."""
        read = [self.before, *(wave.counters for wave in self.waves)]
        found = []
        for name in self.error_counters:
            for earlier, later in itertools.pairwise(read):
                if name in earlier and name not in later:
                    found.append(f"{name} vanished at {earlier[name]:g}")
                elif later.get(name, 0.0) < earlier.get(name, 0.0):
                    found.append(f"{name} fell from {earlier[name]:g} to {later[name]:g}")
        return tuple(found)

    @property
    def given_up(self) -> bool:
        """Whether the soak ended since nothing worked any more."""
        return gives_up(self.waves)

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
            f"{name} grew by {growth[name]:g}"
            for name in self.error_counters
            if growth.get(name, 0.0) > 0
        ]
        found += self.restarted
        if self.given_up:
            found.append(f"given up: every request of {FAILED_WAVES} waves in a row failed")
        return tuple(dict.fromkeys(found)) or (() if self.waves else ("no wave came to its end",))

    def as_dict(self) -> dict[str, Any]:
        """Return the fields and what follows from them, for a report."""
        rates = [wave.tokens_per_second for wave in self.waves if wave.completion_tokens]
        return {
            **asdict(self),
            "growth": self.growth,
            "differing_repeats": self.differing,
            "given_up": self.given_up,
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
    """Yield wave after wave until the minutes are over; counters are read after each.

    It ends early when nothing works any more.
    """
    began = time.monotonic()
    waves: list[Wave] = []
    while not waves or time.monotonic() - began < 60 * plan.minutes:
        waves.append(_wave(api, plan, corpus, density, len(waves), began, counters))
        yield waves[-1]
        if gives_up(waves):
            return


def gives_up(waves: Sequence[Wave]) -> bool:
    """Tell whether every request of the last FAILED_WAVES waves failed."""
    last = waves[-FAILED_WAVES:]
    return len(last) == FAILED_WAVES and all(wave.failed for wave in last)


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
    long = _begun(lambda: ask(api, long_text, 1, GREEDY, plan.timeout))
    # The last has the prompt of the first, which is greedy: the two must not differ.
    streams = [_begun(partial(_stream, api, plan, seed, of)) for of in (*range(plan.streams), 0)]
    *traces, repeat = [one.result() for one in streams]
    prefill = long.result()
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
        errors=tuple(f"wave {number}: {fault}" for one in everyone if (fault := _fault(one))),
        repeats_equal=traces[0].text == repeat.text or bool(traces[0].error or repeat.error),
        counters=dict(counters()),
    )


def _begun(work: Callable[[], Trace]) -> "Future[Trace]":
    """Start it beside the rest, in a thread that does not keep an interrupted command from ending.

    The threads of an executor would: Python waits for them.
    """
    future: Future[Trace] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def _fault(trace: Trace) -> str | None:
    """Return what is wrong with a request: an answer without a token is no answer."""
    if trace.error:
        return trace.error
    if trace.completion_tokens is None or trace.prompt_tokens is None:
        return "the server told no usage"
    return None if trace.completion_tokens else "an answer without a token"


def _stream(api: Api, plan: SoakPlan, seed: int, index: int) -> Trace:
    text = prompt(KINDS[index % len(KINDS)], seed, index)
    sampling = SAMPLED if index // 2 % 2 else GREEDY
    return ask(api, text, plan.max_tokens, sampling, plan.timeout)
