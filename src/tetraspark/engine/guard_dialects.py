"""Guards of the API's other dialects of a chat, `/v1/messages` and `/v1/responses`: their caps."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from tetraspark.engine.guard_server import cap_request, settings, with_header

MESSAGES_CAPS = ("max_tokens",)
RESPONSES_CAPS = ("max_output_tokens",)
STREAM_HEADERS = {"Cache-Control": "no-cache", "Connection": "keep-alive"}
"""Those of the engine's own route of streamed responses (`http_server.v1_responses_request`)."""


async def around_handle_messages(
    original: Callable[..., Awaitable[Any]], serving: Any, request: Any, raw_request: Any
) -> Any:
    """AROUND `AnthropicServing.handle_messages`: hold `max_tokens` to the cap, and tell it."""
    limits = settings()
    if limits is None:
        return await original(serving, request, raw_request)
    told = cap_request(request, MESSAGES_CAPS, limits)
    return with_header(await original(serving, request, raw_request), told)


async def around_create_responses(
    original: Callable[..., Awaitable[Any]], serving: Any, request: Any, raw_request: Any = None
) -> Any:
    """AROUND `OpenAIServingResponses.create_responses`: the same for `max_output_tokens`.

    The engine generates two tokens fewer than that field says, whatever it says.
    """
    limits = settings()
    if limits is None:
        return await original(serving, request, raw_request)
    told = cap_request(request, RESPONSES_CAPS, limits)
    result = await original(serving, request, raw_request)
    # The engine's route makes a response of a stream without a place for headers.
    return with_header(_response(result) if isinstance(result, AsyncGenerator) else result, told)


def _response(events: AsyncGenerator[str, None]) -> Any:
    from fastapi.responses import StreamingResponse

    return StreamingResponse(events, media_type="text/event-stream", headers=STREAM_HEADERS)
