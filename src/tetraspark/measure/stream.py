"""One streamed chat completion, with the time of every piece and the tokens the server counted."""

import time
from dataclasses import dataclass
from typing import Any

import httpx

from tetraspark.errors import RunError
from tetraspark.line.api import Api
from tetraspark.measure.events import beginning, events
from tetraspark.measure.reader import Piece, Reader
from tetraspark.measure.secret import without_key

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
    reader, sent = Reader(max_tokens), time.monotonic()
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
