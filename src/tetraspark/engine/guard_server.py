"""Guards inside the API's process: limits on what a request asks for, told to the client."""

import json
import os
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any

from tetraspark.engine.guard_env import GuardSettings, guard_settings
from tetraspark.engine.guard_request import (
    TOGGLES,
    RefusedRequest,
    cap_of,
    prompts_of,
    refuse_effort,
    refuse_many,
    thinking_of,
    unknown_effort,
)

HEADER = "X-Tetraspark-Max-Tokens"
EFFORT = "reasoning_effort"
CHAT_CAPS = ("max_completion_tokens", "max_tokens")
COMPLETION_CAPS = ("max_tokens",)


@cache
def settings() -> GuardSettings | None:
    """Return this process's limits; the plugin has ended a process whose variables are wrong."""
    return guard_settings(os.environ)


async def around_handle_request(
    original: Callable[..., Awaitable[Any]], serving: Any, request: Any, raw_request: Any
) -> Any:
    """AROUND `OpenAIServingBase.handle_request`: hold a chat or a completion to the limits.

    The answer's body stays the engine's; a header tells the cap on its tokens.
    """
    from sglang.srt.entrypoints.openai.protocol import ChatCompletionRequest, CompletionRequest

    limits = settings()
    is_chat = isinstance(request, ChatCompletionRequest)
    if limits is None or not (is_chat or isinstance(request, CompletionRequest)):
        return await original(serving, request, raw_request)
    try:
        if is_chat:
            await _guard_chat(request, raw_request, limits)
        else:
            refuse_many(request.best_of, prompts_of(request.prompt), limits)
            refuse_many(request.n, prompts_of(request.prompt), limits)
    except RefusedRequest as error:
        return _refusal(error)
    told = cap_request(request, CHAT_CAPS if is_chat else COMPLETION_CAPS, limits)
    return with_header(await original(serving, request, raw_request), told)


async def _guard_chat(request: Any, raw_request: Any, limits: GuardSettings) -> None:
    refuse_many(request.n, 1, limits)
    kwargs = request.chat_template_kwargs or {}
    refuse_effort((request.reasoning_effort, kwargs.get(EFFORT)), limits)
    thinking = thinking_of(await _own_words(request, raw_request))
    if thinking is not None:
        request.chat_template_kwargs = {**kwargs, **dict.fromkeys(TOGGLES, thinking)}


async def _own_words(request: Any, raw_request: Any) -> dict[str, Any]:
    """Return the body as the client sent it, or what the engine made of it where that is enough.

    The engine drops `enable_thinking`, and fills both switches from `reasoning_effort`. The
    parsed body is kept with the request; only one with both is parsed again.
    """
    kwargs = request.chat_template_kwargs or {}
    body = await raw_request.json() if raw_request is not None else {}
    if not isinstance(body, dict):
        return {}
    at_top = any(name in body for name in TOGGLES)
    if kwargs and (at_top or len({kwargs.get(name) for name in TOGGLES}) > 1):
        body = json.loads(await raw_request.body())
    elif not at_top and request.reasoning_effort is not None:
        return {}
    return {name: body.get(name) for name in (*TOGGLES, "chat_template_kwargs")}


def cap_request(request: Any, names: tuple[str, ...], limits: GuardSettings) -> str | None:
    """Clamp what a request asks for in the fields of these names, of which the engine takes the
    first that is neither absent nor 0, else the last; return what the header is to say.

    That is nothing for a negative number, which the engine refuses. What was not asked for is
    filled by the scheduler, behind the engine's own check of prompt and answer against the context.
    """
    values = [getattr(request, name) for name in names]
    asked = next(filter(None, values), values[-1])
    if asked is not None and asked < 0:
        return None
    cap = cap_of(asked, limits)
    if cap.why == "limit":
        for name, value in zip(names, values, strict=True):
            if value:
                setattr(request, name, min(value, cap.tokens))
    return str(cap)


def with_header(response: Any, told: str | None) -> Any:
    """Return an answer of the engine as a response that tells the cap, if any, in its header."""
    if told is None:
        return response
    from sglang.srt.utils.json_response import model_json_response

    response = model_json_response(response)
    if hasattr(response, "headers"):
        response.headers[HEADER] = told
    return response


def _refusal(error: RefusedRequest) -> Any:
    from fastapi.responses import JSONResponse

    return JSONResponse(error.as_error(), status_code=400)


def before_normalize(request: Any) -> None:
    """BEFORE `GenerateReqInput.normalize_batch_and_arguments`: the bound on every route.

    Raises RefusedRequest, a ValueError, which each route of the engine answers with HTTP 400.
    """
    limits = settings()
    if limits is None:
        return
    params = request.sampling_params
    each = params if isinstance(params, list) else [params or {}]
    choices = max((one.get("n") or 1 for one in each), default=1)
    texts = request.text if request.text is not None else request.input_ids
    refuse_many(choices, prompts_of(texts), limits)


def name_efforts(app: Any) -> None:
    """Name the allowed tiers where the engine's own types refuse a reasoning effort."""
    from fastapi.exceptions import RequestValidationError

    limits = settings()
    if limits is None:
        return
    engines = app.exception_handlers[RequestValidationError]

    async def answer(request: Any, error: Any) -> Any:
        effort = _refused_effort(request.url.path, error.errors())
        if effort is None:
            return await engines(request, error)
        return _refusal(unknown_effort(effort[0], limits))

    app.add_exception_handler(RequestValidationError, answer)


def _refused_effort(path: str, errors: Any) -> tuple[object] | None:
    """Return the effort that the engine refused, if that is what it refused."""
    if not path.startswith("/v1/chat/completions"):
        return None
    for error in errors:
        given = error.get("input")
        if EFFORT in error.get("loc", ()):
            return (given,)
        if "invalid reasoning effort" in error.get("msg", "") and isinstance(given, dict):
            reasoning = given.get("reasoning")
            own = reasoning if isinstance(reasoning, dict) else {}
            return (own.get("effort", own.get(EFFORT)),)
    return None
