"""Prefill: tokens a second until the first token, on real text and, apart from it, on filler."""

import statistics
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from tetraspark.line.api import Api
from tetraspark.measure.corpus import Corpus, filler, is_filler
from tetraspark.measure.sized import length_faults, measure_density, meet_length
from tetraspark.measure.stream import Trace, ask
from tetraspark.measure.window import TEMPLATE_TOKENS

Text = Literal["real", "filler"]
Maker = Callable[[int, int], str]
"""Makes a text of so many characters for a number: another number, another text."""
QUESTION = "\n\nHow does the text above begin?"


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
    makers: dict[Text, Maker] = {"real": corpus.text, "filler": filler}
    number = seed * 1_000_003
    for text in texts:
        prompts = _Prompts(api, makers[text], number, timeout)
        density = measure_density(api, prompts.to_count, timeout)
        for wanted in sorted(lengths):
            requests = _requests(prompts, text, wanted, density.characters(wanted), repeats + 1)
            yield Row(text, wanted, requests[1:])
        number = prompts.number


class _Prompts:
    """Sends prompts of one kind of text, each with the next number; `last` is the newest."""

    def __init__(self, api: Api, make: Maker, number: int, timeout: float) -> None:
        self._api = api
        self._make = make
        self._timeout = timeout
        self.number = number
        self.last = ""

    def to_count(self, size: int) -> str:
        """Return a prompt that no number has, to count its tokens."""
        return self._make(size, -self.number - size) + QUESTION

    def send(self, size: int) -> Trace:
        """Ask for one token after a new prompt of so many characters and the question."""
        self.number += 1
        self.last = self._make(size, self.number) + QUESTION
        return ask(self._api, self.last, 1, timeout=self._timeout)


def _requests(
    prompts: _Prompts, text: Text, wanted: int, size: int, count: int
) -> tuple[Prefill, ...]:
    """Make so many requests of one length; the size that one had to be corrected to is kept."""
    found = []
    for _ in range(count):
        trace, size = meet_length(size, wanted, prompts.send)
        found.append(judge(trace, wanted, text, prompts.last))
    return tuple(found)
