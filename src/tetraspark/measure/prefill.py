"""Prefill: tokens a second until the first token, on real text and, apart from it, on filler."""

import statistics
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from tetraspark.line.api import Api
from tetraspark.measure.corpus import Corpus, filler, is_filler
from tetraspark.measure.sized import Density, length_faults, measure_density
from tetraspark.measure.stream import Trace, ask
from tetraspark.measure.window import TEMPLATE_TOKENS

Text = Literal["real", "filler"]
QUESTION = "\n\nHow does the text above begin?"
PLACES = 5
"""How many texts are tried for a length: one of them may have far denser words than the rest.

Each after the first has its size corrected by the one before it.
"""


@dataclass(frozen=True)
class Prefill:
    """One request: a prompt of so many tokens, and the seconds until its first token."""

    prompt_tokens: int | None
    cached_tokens: int | None
    first_token_seconds: float | None
    faults: tuple[str, ...]

    @property
    def tokens_per_second(self) -> float | None:
        """Prompt tokens over the time to the first token."""
        if not self.prompt_tokens or not self.first_token_seconds:
            return None
        return self.prompt_tokens / self.first_token_seconds


@dataclass(frozen=True)
class Row:
    """One length with one kind of text; the first request of a run is dropped as warm-up."""

    text: Text
    wanted_tokens: int
    requests: tuple[Prefill, ...]

    @property
    def valid(self) -> bool:
        """Whether every request may be believed."""
        return bool(self.requests) and not any(one.faults for one in self.requests)

    @property
    def tokens_per_second(self) -> float | None:
        """Median of the valid requests."""
        found = [
            one.tokens_per_second
            for one in self.requests
            if not one.faults and one.tokens_per_second is not None
        ]
        return statistics.median(found) if found else None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields and what follows from them, for a report."""
        rates = {"tokens_per_second": self.tokens_per_second, "valid": self.valid}
        return {**asdict(self), **rates}


def judge(trace: Trace, wanted_tokens: int, text: Text, prompt: str) -> Prefill:
    """Return what a request shows, and why it may not be believed. Pure."""
    found = [f"the request failed: {trace.error}"] if trace.error else []
    tokens, cached = trace.prompt_tokens, trace.cached_tokens
    if trace.first is None and not trace.error:
        found.append("no first token")
    found += length_faults(tokens, wanted_tokens)
    if cached is not None and cached > TEMPLATE_TOKENS:
        found.append(f"{cached} tokens came out of the prefix cache")
    if text == "real" and is_filler(prompt):
        found.append("filler under the name of real text")
    seconds = None if trace.first is None else trace.first - trace.sent
    return Prefill(tokens, cached, seconds, tuple(found))


def measure_prefill(
    api: Api,
    corpus: Corpus,
    lengths: tuple[int, ...],
    texts: tuple[Text, ...],
    repeats: int,
    seed: int,
    timeout: float,
) -> Iterator[Row]:
    """Yield a row for each kind of text and length, shortest first.

    Every prompt is new to the server: its first words are its own. One of another length makes
    way for another. Raises RunError when the server does not count.
    """
    makers: dict[Text, Callable[[int, int], str]] = {"real": corpus.text, "filler": filler}
    number = seed * 1_000_003
    for text in texts:
        density = _density(api, makers[text], number, timeout)
        for wanted in sorted(lengths):
            requests = []
            size = density.characters(wanted)
            for _ in range(repeats + 1):
                for _ in range(PLACES):
                    number += 1
                    prompt = makers[text](size, number) + QUESTION
                    trace = ask(api, prompt, 1, timeout=timeout)
                    if trace.error or not length_faults(trace.prompt_tokens, wanted):
                        break
                    size = max(size * wanted // (trace.prompt_tokens or wanted), 1)
                requests.append(judge(trace, wanted, text, prompt))
            yield Row(text, wanted, tuple(requests[1:]))


def _density(api: Api, make: Callable[[int, int], str], number: int, timeout: float) -> Density:
    return measure_density(api, lambda size: make(size, -number - size) + QUESTION, timeout)
