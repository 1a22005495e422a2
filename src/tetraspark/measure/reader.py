"""What the events of a stream say: its pieces, its end, and the tokens that were counted."""

from dataclasses import dataclass, field
from typing import Any

from tetraspark.measure.usage import Usage, usage_of

WHOLE = ("stop", "length", "tool_calls", "function_call")
"""Finish reasons of an answer that came to its end."""


@dataclass(frozen=True)
class Piece:
    """A piece of an answer: when it came (monotonic seconds), its text, tokens up to it if told.

    A piece may hold several tokens: with speculative decoding it usually does. So many of its
    first characters are `reasoning`, where the server tells that apart.
    """

    at: float
    text: str
    tokens: int | None
    reasoning: int = 0


@dataclass
class Reader:
    """Gathers what a stream says of a request for at most `max_tokens` tokens."""

    max_tokens: int
    pieces: list[Piece] = field(default_factory=list)
    finish: str | None = None
    usage: Usage = field(default_factory=Usage)

    def read(self, data: dict[str, Any], now: float) -> None:
        """Take in one event. Raises ValueError for what no server may say."""
        if data.get("error") is not None:
            raise ValueError(f"the server says {data['error']}")
        told = None if data.get("usage") is None else usage_of(data["usage"])
        self.usage = told or self.usage
        for choice in data.get("choices") or ():
            delta = choice.get("delta") or {}
            reasoning = _text(delta, "reasoning_content") or _text(delta, "reasoning")
            text = reasoning + _text(delta, "content")
            if text:
                tokens = told.completion_tokens if told else None
                self.pieces.append(Piece(now, text, tokens, len(reasoning)))
            self.finish = choice.get("finish_reason") or self.finish
        tokens = self.usage.completion_tokens or 0
        if tokens > self.max_tokens:
            raise ValueError(f"{tokens} tokens, where {self.max_tokens} were asked for")
        # A token may come in two pieces: the last of reasoning, and text that was held back.
        if len(self.pieces) > 2 * self.max_tokens + 8:
            raise ValueError(f"{len(self.pieces)} pieces for at most {self.max_tokens} tokens")

    def fault(self) -> str | None:
        """Return what is wrong with how the stream ended."""
        if self.finish is None:
            return "the stream ended without a finish reason"
        return None if self.finish in WHOLE else f"the finish reason is {self.finish!r}"


def _text(delta: dict[str, Any], key: str) -> str:
    text = delta.get(key)
    if text is not None and not isinstance(text, str):
        raise ValueError(f"delta.{key} is no text")
    # Half a surrogate pair is no text that can be written anywhere.
    return (text or "").encode("utf-8", "replace").decode()
