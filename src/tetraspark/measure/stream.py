"""One streamed chat completion, with the time of every piece and the tokens the server counted."""

import time
from dataclasses import dataclass, field
from typing import Any

import httpx

from tetraspark.errors import RunError
from tetraspark.line.api import Api
from tetraspark.measure.events import beginning, events
from tetraspark.measure.secret import without_key
from tetraspark.measure.usage import Usage, usage_of

WHOLE = ("stop", "length", "tool_calls", "function_call")
"""Finish reasons of an answer that came to its end."""
TOKEN_SECONDS = 10.0
"""The longest that a token may take, over a whole request."""
ERROR_CHARACTERS = 300


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


def ask(
    api: Api,
    prompt: str,
    max_tokens: int,
    sampling: Sampling = GREEDY,
    timeout: float = 600.0,
) -> Trace:
    """Send one chat request and follow its stream to the end; a failure is told in the trace.

    `timeout` is the longest silence, in seconds; all in all a request may last that long, and
    `TOKEN_SECONDS` a token.
    """
    reader, sent = _Reader(max_tokens), time.monotonic()
    until = sent + timeout + max_tokens * min(timeout, TOKEN_SECONDS)
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
                raise ValueError(_refusal(response, api, until))
            for data in events(response, until):
                reader.read(data, time.monotonic())
        error = reader.fault()
    except ValueError as cause:
        error = str(cause)
    except (httpx.HTTPError, httpx.InvalidURL, OSError, RunError, RecursionError) as cause:
        error = f"{type(cause).__name__}: {cause}".rstrip(": ")
    except (AttributeError, TypeError, KeyError) as cause:
        error = f"an answer of another shape ({type(cause).__name__}: {cause})"
    return Trace(
        sent=sent,
        ended=time.monotonic(),
        pieces=tuple(reader.pieces),
        finish=reader.finish,
        prompt_tokens=reader.usage.prompt_tokens,
        completion_tokens=reader.usage.completion_tokens,
        cached_tokens=reader.usage.cached_tokens,
        error=None if error is None else without_key(error, api.key)[:ERROR_CHARACTERS],
    )


def _text(delta: dict[str, Any], key: str) -> str:
    text = delta.get(key)
    if text is not None and not isinstance(text, str):
        raise ValueError(f"delta.{key} is no text")
    # Half a surrogate pair is no text that can be written anywhere.
    return (text or "").encode("utf-8", "replace").decode()


def _refusal(response: httpx.Response, api: Api, until: float) -> str:
    said = f"HTTP {response.status_code}: {beginning(response, until)}"
    wrong_path = response.status_code == 404 and not api.url.endswith("/v1")
    return f"{said} (the URL does not end with /v1)" if wrong_path else said


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
