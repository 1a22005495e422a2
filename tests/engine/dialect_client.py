"""Ask the engine's own routes of `/v1/messages` and `/v1/responses`; print what came of it.

The routes, their types and the conversion of messages are the engine's; what would generate is a
stand-in, which notes how many tokens it is asked for. Run in an interpreter with the engine.
"""

import json
import os
from typing import Any
from unittest.mock import patch

from fastapi.testclient import TestClient
from sglang.srt.entrypoints.anthropic.serving import AnthropicServing
from sglang.srt.entrypoints.http_server import app
from sglang.srt.entrypoints.openai.protocol import ResponsesResponse

from tetraspark.engine import guard_server
from tetraspark.engine.guard_dialects import around_create_responses
from tetraspark.engine.guard_env import GuardSettings
from tetraspark.engine.guard_server import HEADER
from tetraspark.engine.hooks import hooks_of
from tetraspark.engine.plugin import apply_hooks

LIMITS = GuardSettings(max_new_tokens=100, default_new_tokens=40)
ASKED: list[int | None] = []


class Chat:
    """Refuses each chat once it has noted its tokens."""

    supports_inline_system = True

    def _validate_request(self, request: Any) -> str:
        ASKED.append(request.max_tokens)
        return "nothing here generates"


class Responses:
    """Answers with one event, with an empty response, or refuses it."""

    async def _made(self, request: Any, raw_request: Any) -> Any:
        ASKED.append(request.max_output_tokens)
        if request.stream:
            return self._events()
        sampling = request.to_sampling_params()
        ASKED.append(sampling["max_new_tokens"])
        return ResponsesResponse.from_request(request, sampling, "tiny", 1, [], "completed", None)

    async def _events(self) -> Any:
        yield "event: one\ndata: {}\n\n"

    async def create_responses(self, request: Any, raw_request: Any = None) -> Any:
        return await around_create_responses(
            lambda serving, *given: serving._made(*given), self, request, raw_request
        )


def asked(client: TestClient, path: str, **fields: Any) -> dict[str, Any]:
    """Send one request; return its status, its header, its text and the tokens that were asked."""
    ASKED.clear()
    response = client.post(path, json={"model": "tiny", **fields})
    kind = response.headers["content-type"].partition(";")[0]
    return {
        "status": response.status_code,
        "told": response.headers.get(HEADER),
        "kind": kind,
        "cache": response.headers.get("cache-control"),
        "text": response.text,
        "tokens": list(ASKED),
    }


def asked_all(client: TestClient) -> dict[str, Any]:
    """Return what each request came to, by name."""
    chat = {"messages": [{"role": "user", "content": "hello"}]}
    return {
        "messages, more": asked(client, "/v1/messages", **chat, max_tokens=10**6),
        "messages, less": asked(client, "/v1/messages", **chat, max_tokens=9),
        "responses, more": asked(client, "/v1/responses", input="a", max_output_tokens=10**6),
        "responses, less": asked(client, "/v1/responses", input="a", max_output_tokens=9),
        "responses, none": asked(client, "/v1/responses", input="a"),
        "responses, stream": asked(client, "/v1/responses", input="a", stream=True),
    }


def main() -> None:
    """Print what they came to with limits and, in the same process, without."""
    apply_hooks(hooks_of("server", cuda=False))
    app.state.anthropic_serving = AnthropicServing(Chat())
    app.state.openai_serving_responses = Responses()
    client = TestClient(app)
    found = {}
    for name, limits in (("guarded", LIMITS.variables()), ("own", {})):
        guard_server.settings.cache_clear()
        with patch.dict(os.environ, limits):
            found[name] = asked_all(client)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
