"""Texts of a wanted number of tokens, as the server counts them."""

from collections.abc import Callable
from dataclasses import dataclass

from tetraspark.errors import Problem, RunError
from tetraspark.line.api import Api
from tetraspark.measure.stream import ask

START_CHARACTERS = 2000


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
            raise RunError(Problem(api.url, seen, "a server that counts", "tetraspark smoke"))
        counts.append(trace.prompt_tokens)
    tokens = counts[1] - counts[0]
    if tokens <= 0:
        seen = f"{counts[0]} prompt tokens for a text, {counts[1]} for twice as much"
        raise RunError(Problem(api.url, seen, "a server that counts", "tetraspark smoke"))
    return Density(START_CHARACTERS / tokens, max(counts[0] - tokens, 0))
