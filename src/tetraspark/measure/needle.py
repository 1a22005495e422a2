"""Needle: a key phrase somewhere in a long text, and whether the model still finds it."""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from tetraspark.line.api import Api
from tetraspark.measure.corpus import Corpus
from tetraspark.measure.sized import length_faults, measure_density, meet_length
from tetraspark.measure.stream import Trace, ask

ADJECTIVES = ("amber", "silver", "quiet", "crimson", "hollow", "gentle", "narrow", "golden")
NOUNS = ("falcon", "harbour", "lantern", "meadow", "orchard", "compass", "glacier", "willow")
QUESTION = "\n\nWhat is the key phrase?"
ANSWER_TOKENS = 24
LINE_CHARACTERS = 120


@dataclass(frozen=True)
class Needle:
    """One case: a phrase at a depth (0 the beginning, 1 the end) of a text of so many tokens."""

    wanted_tokens: int
    depth: float
    phrase: str
    answer: str
    prompt_tokens: int | None
    cached_tokens: int | None
    first_token_seconds: float | None
    error: str | None

    @property
    def found(self) -> bool:
        """Whether the answer to a text of that length is a line with the phrase in it.

        A longer answer may hold the phrase since it repeats the text.
        """
        whole = re.compile(rf"(?<![\w-]){re.escape(self.phrase)}(?![\w-]|[.,]\d)", re.IGNORECASE)
        answer = self.answer.strip()
        line = "\n" not in answer and len(answer) <= LINE_CHARACTERS
        return not self.faults and line and whole.search(answer) is not None

    @property
    def faults(self) -> tuple[str, ...]:
        """Every reason for which the case says nothing of the model."""
        if self.error is not None:
            return (self.error,)
        return tuple(length_faults(self.prompt_tokens, self.wanted_tokens))

    def as_dict(self) -> dict[str, Any]:
        """Return the fields and the verdict, for a report."""
        return {**asdict(self), "found": self.found, "faults": self.faults}


def phrase_of(seed: int) -> str:
    """Return the phrase of a case: two words and a number."""
    draw = random.Random(seed)
    return f"{draw.choice(ADJECTIVES)} {draw.choice(NOUNS)} {draw.randint(10, 99)}"


def haystack(corpus: Corpus, characters: int, depth: float, phrase: str, seed: int) -> str:
    """Return a text with the phrase at a depth, between two paragraphs, and the question."""
    paragraphs = corpus.text(characters, seed).split("\n\n")
    place = round(depth * len(paragraphs))
    sentence = f"The key phrase is {phrase}."
    return "\n\n".join([*paragraphs[:place], sentence, *paragraphs[place:]]) + QUESTION


def measure_needle(
    api: Api,
    corpus: Corpus,
    lengths: Sequence[int],
    depths: Sequence[float],
    cases: int,
    seed: int,
    timeout: float,
) -> Iterator[Needle]:
    """Yield every case, shortest text first.

    A text of another length makes way for another, with a phrase of its own. Raises RunError when
    the server does not count.
    """
    first = seed * 1_000_003 + 500_000
    density = measure_density(api, lambda size: corpus.text(size, -first - size), timeout)
    number = first

    def send(depth: float, size: int) -> Trace:
        nonlocal number
        number += 1
        prompt = haystack(corpus, size, depth, phrase_of(number), number)
        return ask(api, prompt, ANSWER_TOKENS, timeout=timeout)

    for wanted in sorted(lengths):
        size = density.characters(wanted - len(QUESTION) // 4)
        for depth in [one for one in depths for _ in range(cases)]:
            trace, size = meet_length(size, wanted, partial(send, depth))
            yield _case(trace, wanted, depth, phrase_of(number))


def _case(trace: Trace, wanted: int, depth: float, phrase: str) -> Needle:
    return Needle(
        wanted_tokens=wanted,
        depth=depth,
        phrase=phrase,
        answer=trace.answer,
        prompt_tokens=trace.prompt_tokens,
        cached_tokens=trace.cached_tokens,
        first_token_seconds=None if trace.first is None else trace.first - trace.sent,
        error=trace.error,
    )
