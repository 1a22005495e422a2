"""Texts of a wanted number of tokens, as the server counts them."""

from collections.abc import Callable
from dataclasses import dataclass

from tetraspark.errors import Problem, RunError
from tetraspark.line.api import Api
from tetraspark.measure.stream import Trace, ask
from tetraspark.measure.window import TEMPLATE_TOKENS

START_CHARACTERS = 2000
LENGTH_SLACK = 0.25
"""How far a prompt may be from its wanted length: tokens of a text differ from place to place."""

PLACES = 5
"""How many texts are tried for a length: one of them may have far denser words than the rest."""


def length_faults(tokens: int | None, wanted: int) -> list[str]:
    """Return why a prompt is not of its wanted length, by the server's count of its tokens."""
    if tokens is None:
        return ["the server told no usage.prompt_tokens"]
    if abs(tokens - wanted) > max(LENGTH_SLACK * wanted, TEMPLATE_TOKENS):
        return [f"{tokens} tokens, not about {wanted}"]
    return []


@dataclass(frozen=True)
class Density:
    """Characters a token of one kind of text, by the server's tokenizer, and the rest's tokens."""

    characters_per_token: float
    overhead: int

    def characters(self, tokens: int) -> int:
        """Return how many characters make a prompt of so many tokens."""
        return max(int((tokens - self.overhead) * self.characters_per_token), 1)


def measure_density(api: Api, text: Callable[[int], str], timeout: float) -> Density:
    """Ask twice, with a text and with twice as much; return what the server counted.

    Raises RunError when it does not answer or counts nothing.
    """
    counts = []
    for characters in (START_CHARACTERS, 2 * START_CHARACTERS):
        trace = ask(api, text(characters), 1, timeout=timeout)
        if trace.error or not trace.prompt_tokens:
            seen = trace.error or "no usage.prompt_tokens"
            raise _no_count(api, seen)
        counts.append(trace.prompt_tokens)
    tokens = counts[1] - counts[0]
    if tokens <= 0:
        seen = f"{counts[0]} prompt tokens for a text, {counts[1]} for twice as much"
        raise _no_count(api, seen)
    return Density(START_CHARACTERS / tokens, max(counts[0] - tokens, 0))


def meet_length(size: int, wanted: int, send: Callable[[int], Trace]) -> tuple[Trace, int]:
    """Send texts until one has its wanted length in tokens, by the server's count.

    `send` sends one of so many characters, another one each time. Each after the first has its
    size corrected by the count of the one before it. Returns the last, whose request failed or
    whose length is another one still where PLACES texts were not enough; and the size to go on
    with.
    """
    for _ in range(PLACES):
        trace = send(size)
        if trace.error or not length_faults(trace.prompt_tokens, wanted):
            break
        size = max(size * wanted // (trace.prompt_tokens or wanted), 1)
    return trace, size


def _no_count(api: Api, seen: str) -> RunError:
    fix = "ask another --url or --model" if api.way is None else "tetraspark smoke"
    return RunError(Problem(api.url, seen, "a server that counts", fix))
