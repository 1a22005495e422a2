"""The line's OpenAI-compatible API, as a client sees it."""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.fleet.runner import Runner

MAX_PORT = 65535
MAX_SECONDS = 1e8
"""About three years: what a clock of the system can hold."""
WRONG_SHAPE = (
    KeyError,
    IndexError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
    RecursionError,
)


@dataclass(frozen=True)
class Answer:
    """A chat completion: its text, why it ended, and the tokens the engine counted."""

    text: str
    finish: str
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True)
class Api:
    """Base URL (with /v1), the model's served name, and the key, which is never printed.

    `way` opens the way to a server on another machine and returns the socket file where that
    begins; without one, or where it returns None, the URL is connected to.
    """

    url: str
    model: str
    key: str | None = field(default=None, repr=False)
    way: Callable[[], Path | None] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        try:
            port = httpx.URL(self.url).port
            seen = f"port {port}" if port is not None and port > MAX_PORT else None
        except httpx.InvalidURL as error:
            seen = str(error)
        if seen is not None:
            raise UsageError(Problem(self.url, seen, "a URL such as http://HOST:PORT/v1"))

    @property
    def root(self) -> str:
        """The server's address without /v1."""
        return self.url.removesuffix("/v1")

    def client(self, timeout: float) -> httpx.Client:
        """Return an HTTP client that sends the key.

        Raises RunError where there is no way, UsageError for a timeout that no clock can hold.
        """
        if not 0 < timeout <= MAX_SECONDS:
            wanted = f"seconds above 0, at most {MAX_SECONDS:.0f}"
            raise UsageError(Problem("timeout", f"{timeout:g} s", wanted, "--timeout 600"))
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        socket = self.way() if self.way else None
        transport = None if socket is None else httpx.HTTPTransport(uds=str(socket))
        return httpx.Client(headers=headers, timeout=timeout, trust_env=False, transport=transport)

    def http_status(self, path: str, timeout: float) -> int | None:
        """Return the HTTP status of a GET below the server's root, or None without an answer."""
        try:
            with self.client(timeout) as client:
                return client.get(self.root + path).status_code
        except (httpx.HTTPError, RunError):
            return None

    def text(self, path: str, timeout: float) -> str | None:
        """Return the text of a GET below the server's root, or None without one."""
        try:
            with self.client(timeout) as client:
                response = client.get(self.root + path)
                return response.text if response.status_code == 200 else None
        except (httpx.HTTPError, RunError):
            return None

    def models(self, timeout: float) -> list[str]:
        """Return the names the server offers. Raises RunError when the server gives none."""
        with self._told(timeout), self.client(timeout) as client:
            data = self._json(client.get(f"{self.url}/models"))
            return [_text(model["id"]) for model in data["data"]]

    def server_info(self, timeout: float) -> dict[str, Any]:
        """Return what the engine says it runs with. Raises RunError when it says nothing.

        Older engines know the second path only, newer ones are to lose it.
        """
        with self._told(timeout), self.client(timeout) as client:
            response = client.get(f"{self.root}/server_info")
            if response.status_code == 404:
                response = client.get(f"{self.root}/get_server_info")
            data = self._json(response)
            if not isinstance(data, dict):
                raise TypeError("no object")
            return data

    def chat(self, prompt: str, max_tokens: int, timeout: float) -> Answer:
        """Return one greedy chat completion. Raises RunError when the server gives none."""
        body = self._body(prompt, max_tokens)
        with self._told(timeout), self.client(timeout) as client:
            return _answer(self._json(client.post(f"{self.url}/chat/completions", json=body)))

    def stream(self, prompt: str, max_tokens: int, timeout: float) -> Iterator[str]:
        """Yield the pieces of one streamed greedy chat completion as they come."""
        body = self._body(prompt, max_tokens) | {"stream": True}
        with (
            self._told(timeout),
            self.client(timeout) as client,
            client.stream("POST", f"{self.url}/chat/completions", json=body) as response,
        ):
            if response.status_code != 200:
                response.read()
                raise self._refused(response)
            yield from _pieces(response.iter_lines())

    def begin(
        self, prompt: str, fields: Mapping[str, Any], timeout: float
    ) -> tuple[int, Mapping[str, str], str]:
        """Send one chat request with further fields; return its status, its headers and, where it
        is refused, the text. An answer is not waited for. Raises RunError without an answer.
        """
        body = {"model": self.model, "messages": [{"role": "user", "content": prompt}], **fields}
        with (
            self._told(timeout),
            self.client(timeout) as client,
            client.stream("POST", f"{self.url}/chat/completions", json=body) as response,
        ):
            text = "" if response.status_code == 200 else response.read().decode(errors="replace")
            return response.status_code, response.headers, text

    @contextlib.contextmanager
    def _told(self, timeout: float) -> Iterator[None]:
        """Turn silence and answers of another kind into a RunError that tells them."""
        try:
            yield
        except httpx.HTTPError as error:
            seen = f"{type(error).__name__}: {error}".rstrip(": ")
            raise self._wrong(seen, f"an answer within {timeout:.0f} s") from error
        except WRONG_SHAPE as error:
            seen = f"an answer of another shape ({type(error).__name__}: {error})"
            raise self._wrong(seen, "an OpenAI-compatible answer") from error

    def _body(self, prompt: str, max_tokens: int) -> dict[str, Any]:
        messages = [{"role": "user", "content": prompt}]
        return {
            "model": self.model,
            "messages": messages,
            "max_tokens": max_tokens,
            "temperature": 0,
        }

    def _json(self, response: httpx.Response) -> dict[str, Any]:
        if response.status_code != 200:
            raise self._refused(response)
        data: dict[str, Any] = response.json()
        return data

    def _refused(self, response: httpx.Response) -> RunError:
        location = response.headers.get("Location") if response.is_redirect else None
        said = response.text[:200] if location is None else f"it is to be asked at {location[:200]}"
        return self._wrong(f"HTTP {response.status_code}: {said}", "HTTP 200")

    def _wrong(self, seen: str, wanted: str) -> RunError:
        return RunError(Problem(self.url, seen, wanted, "tetraspark status"))


def api_of(plan: Mapping[str, Any], key: str | None, runner: Runner) -> Api:
    """Return the API of a line, by its plan as JSON, as this machine reaches it."""
    head, host, port = plan["ranks"][0]["node"], plan["host"], plan["port"]
    return Api(plan["url"], plan["served_name"], key, lambda: runner.way_to(head, host, port))


def _answer(data: dict[str, Any]) -> Answer:
    choice = data["choices"][0]
    return Answer(
        text=_text(choice["message"]["content"] or ""),
        finish=_text(choice["finish_reason"]),
        prompt_tokens=data["usage"]["prompt_tokens"],
        completion_tokens=data["usage"]["completion_tokens"],
    )


def _pieces(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        payload = line.removeprefix("data: ")
        if not line.startswith("data: ") or payload == "[DONE]":
            continue
        for choice in json.loads(payload)["choices"]:
            piece = choice["delta"].get("content")
            if piece:
                yield _text(piece)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"no text: {str(value)[:60]}")
    return value
