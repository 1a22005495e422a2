"""One streamed chat completion, with the time of every piece and the tokens the server counted."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from tetraspark.line.api import Api


@dataclass(frozen=True)
class Sampling:
    """How tokens are chosen: greedy at temperature 0, else sampled."""

    temperature: float = 0.0
    top_p: float = 1.0

    @property
    def name(self) -> str:
        """`greedy` or `sampled`."""
        return "sampled" if self.temperature else "greedy"


GREEDY = Sampling()
SAMPLED = Sampling(temperature=0.7, top_p=0.95)


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


@dataclass(frozen=True)
class Trace:
    """What came of one request. Times are monotonic seconds; `error` is None when it was whole.

    Tokens are those of the server's `usage`, None where it told none; `cached_tokens` are those of
    the prompt that it did not compute again.
    """

    sent: float
    ended: float
    pieces: tuple[Piece, ...] = ()
    finish: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    error: str | None = None

    @property
    def text(self) -> str:
        """All that was written."""
        return "".join(piece.text for piece in self.pieces)

    @property
    def answer(self) -> str:
        """What was written but the reasoning that the server tells apart."""
        return "".join(piece.text[piece.reasoning :] for piece in self.pieces)

    @property
    def first(self) -> float | None:
        """When the first piece came."""
        return self.pieces[0].at if self.pieces else None

    @property
    def last(self) -> float | None:
        """When the last piece came."""
        return self.pieces[-1].at if self.pieces else None

    @property
    def counted(self) -> bool:
        """Whether the server told the tokens of every piece."""
        return bool(self.pieces) and all(piece.tokens is not None for piece in self.pieces)

    def tokens_at(self, moment: float) -> float:
        """Return how many tokens had come by a moment.

        Told by the server with each piece; where it tells only the sum, tokens are taken to be
        spread over the text by characters. Never by pieces.
        """
        seen = [piece for piece in self.pieces if piece.at <= moment]
        if not seen:
            return 0.0
        if self.counted:
            return float(seen[-1].tokens or 0)
        characters = sum(len(piece.text) for piece in seen)
        return (self.completion_tokens or 0) * characters / max(len(self.text), 1)


@dataclass
class _Reader:
    """Gathers what a stream says."""

    pieces: list[Piece] = field(default_factory=list)
    finish: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)

    def read(self, data: dict[str, Any], now: float) -> None:
        """Take in one event."""
        if "error" in data:
            raise ValueError(f"the server says {str(data['error'])[:200]}")
        usage = data.get("usage") or {}
        self.usage = usage or self.usage
        for choice in data.get("choices", ()):
            delta = choice.get("delta") or {}
            reasoning = delta.get("reasoning_content") or ""
            text = reasoning + (delta.get("content") or "")
            if text:
                tokens = usage.get("completion_tokens")
                self.pieces.append(Piece(now, text, tokens, len(reasoning)))
            self.finish = choice.get("finish_reason") or self.finish


def ask(
    api: Api,
    prompt: str,
    max_tokens: int,
    sampling: Sampling = GREEDY,
    timeout: float = 600.0,
) -> Trace:
    """Send one chat request and follow its stream to the end; a failure is told in the trace.

    `timeout` is the longest silence, in seconds.
    """
    reader, sent = _Reader(), time.monotonic()
    error = None
    try:
        with (
            api.client(timeout) as client,
            client.stream(
                "POST",
                f"{api.url}/chat/completions",
                json=_body(api.model, prompt, max_tokens, sampling),
            ) as response,
        ):
            if response.status_code != 200:
                response.read()
                raise ValueError(f"HTTP {response.status_code}: {response.text[:200]}")
            for data in _events(response.iter_lines()):
                reader.read(data, time.monotonic())
        if reader.finish is None:
            error = "the stream ended without a finish reason"
    except (httpx.HTTPError, ValueError, AttributeError, TypeError) as cause:
        error = f"{type(cause).__name__}: {cause}".removeprefix("ValueError: ").rstrip(": ")
    details = reader.usage.get("prompt_tokens_details") or {}
    return Trace(
        sent=sent,
        ended=time.monotonic(),
        pieces=tuple(reader.pieces),
        finish=reader.finish,
        prompt_tokens=reader.usage.get("prompt_tokens"),
        completion_tokens=reader.usage.get("completion_tokens"),
        cached_tokens=details.get("cached_tokens"),
        error=error,
    )


def _body(model: str, prompt: str, max_tokens: int, sampling: Sampling) -> dict[str, Any]:
    return {
        "model": model,
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "stream": True,
        # The second is SGLang's and vLLM's: usage with every piece. Others ignore it.
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    }


def _events(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        payload = line.removeprefix("data:").strip()
        if line.startswith("data:") and payload != "[DONE]":
            yield json.loads(payload)
