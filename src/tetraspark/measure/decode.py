"""Decode: tokens a second of requests that decode together, by kind of text and concurrency."""

import itertools
import statistics
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from typing import Any

from tetraspark.line.api import Api
from tetraspark.measure.prompts import Kind, prompt
from tetraspark.measure.stream import GREEDY, Sampling, Trace, ask
from tetraspark.measure.window import common_window, faults, peak_running

Ask = Callable[[str, int, Sampling], Trace]


@dataclass(frozen=True)
class Round:
    """One round of a cell: so many requests sent at once, and what they had in common."""

    tokens_per_second: float | None
    window_seconds: float | None
    tokens: float | None
    first_token_seconds: tuple[float, ...]
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    peak_running: int
    faults: tuple[str, ...]


@dataclass(frozen=True)
class Cell:
    """One row of the benchmark; `counted` tells whether the server counted every piece's tokens.

    Rates are medians of the valid rounds, None where no round is valid. `acceptance_length` is
    tokens a verification step, None where the server tells none.
    """

    kind: Kind
    sampling: str
    concurrency: int
    max_tokens: int
    counted: bool
    rounds: tuple[Round, ...]
    acceptance_length: float | None = None

    @property
    def valid(self) -> bool:
        """Whether every round may be believed."""
        return bool(self.rounds) and not any(one.faults for one in self.rounds)

    @property
    def faults(self) -> tuple[str, ...]:
        """Every reason for which a round may not be believed, each once."""
        return tuple(dict.fromkeys(fault for one in self.rounds for fault in one.faults))

    @property
    def tokens_per_second(self) -> float | None:
        """Median over the valid rounds."""
        rates = [one.tokens_per_second for one in self.rounds if not one.faults]
        found = [rate for rate in rates if rate is not None]
        return statistics.median(found) if found else None

    @property
    def spread(self) -> float | None:
        """Largest less smallest rate of the valid rounds, over their median."""
        rates = [one.tokens_per_second for one in self.rounds if not one.faults]
        found = [rate for rate in rates if rate is not None]
        middle = self.tokens_per_second
        return (max(found) - min(found)) / middle if middle and len(found) > 1 else None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields and what follows from them, for a report."""
        return {
            **asdict(self),
            "valid": self.valid,
            "faults": self.faults,
            "tokens_per_second": self.tokens_per_second,
            "spread": self.spread,
        }


@dataclass(frozen=True)
class DecodePlan:
    """What to measure: every kind with every sampling at every concurrency.

    `warm_up` rounds go before each cell and are dropped.
    """

    kinds: tuple[Kind, ...]
    samplings: tuple[Sampling, ...]
    concurrencies: tuple[int, ...]
    max_tokens: int
    rounds: int
    warm_up: int
    seed: int
    timeout: float

    @property
    def cells(self) -> tuple[tuple[Kind, Sampling, int], ...]:
        """Every kind with every sampling at every concurrency, in the order of measuring."""
        return tuple(itertools.product(self.kinds, self.samplings, self.concurrencies))


def judge(traces: Sequence[Trace], concurrency: int) -> Round:
    """Return what a round shows. Pure."""
    window = common_window(traces)
    usage = [trace for trace in traces if trace.completion_tokens is not None]
    cached = [trace.cached_tokens for trace in traces if trace.cached_tokens is not None]
    return Round(
        tokens_per_second=window.rate if window else None,
        window_seconds=window.seconds if window else None,
        tokens=window.tokens if window else None,
        first_token_seconds=tuple(
            trace.first - trace.sent for trace in traces if trace.first is not None
        ),
        prompt_tokens=sum(trace.prompt_tokens or 0 for trace in usage) if usage else None,
        completion_tokens=sum(trace.completion_tokens or 0 for trace in usage) if usage else None,
        cached_tokens=sum(cached) if cached else None,
        peak_running=peak_running(traces),
        faults=tuple(faults(traces, concurrency)),
    )


def measure_decode(
    api: Api, plan: DecodePlan, acceptance: Callable[[], float | None]
) -> Iterator[Cell]:
    """Yield cell after cell. `acceptance` tells the server's tokens a verification step now."""

    def send(text: str, max_tokens: int, sampling: Sampling) -> Trace:
        return ask(api, text, max_tokens, sampling, plan.timeout)

    numbers = itertools.count()
    for kind, sampling, concurrency in plan.cells:
        rounds = [
            together(
                send,
                [prompt(kind, plan.seed, next(numbers)) for _ in range(concurrency)],
                plan.max_tokens,
                sampling,
            )
            for _ in range(plan.warm_up + plan.rounds)
        ][plan.warm_up :]
        yield Cell(
            kind=kind,
            sampling=sampling.name,
            concurrency=concurrency,
            max_tokens=plan.max_tokens,
            counted=all(trace.counted for traces in rounds for trace in traces),
            rounds=tuple(judge(traces, concurrency) for traces in rounds),
            acceptance_length=acceptance(),
        )


def together(send: Ask, prompts: Sequence[str], max_tokens: int, sampling: Sampling) -> list[Trace]:
    """Send all prompts at once; return their traces when the last has ended."""
    answers: list[Future[Trace]] = [Future() for _ in prompts]

    def follow(answer: Future[Trace], text: str) -> None:
        try:
            answer.set_result(send(text, max_tokens, sampling))
        except BaseException as error:
            answer.set_exception(error)

    # Daemons, and no pool: a pool would hold up the end of a program that was told to stop.
    for answer, text in zip(answers, prompts, strict=True):
        threading.Thread(target=follow, args=(answer, text), daemon=True).start()
    return [answer.result() for answer in answers]


DEFAULT = DecodePlan(
    kinds=("prose", "code", "structured", "json"),
    samplings=(GREEDY,),
    concurrencies=(1, 2, 4, 8, 16),
    max_tokens=256,
    rounds=3,
    warm_up=1,
    seed=0,
    timeout=600.0,
)
