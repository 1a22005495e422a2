"""Smoke: does the served line answer as an OpenAI-compatible server should?"""

from dataclasses import replace

from tetraspark.engine.guard_env import GuardSettings
from tetraspark.line.api import Api
from tetraspark.line.smoke_check import Check, checked
from tetraspark.line.smoke_guards import guard_checks
from tetraspark.site.schema import Canary


def smoke(
    api: Api, canary: Canary, timeout: float, limits: GuardSettings | None = None
) -> list[Check]:
    """Run every check against the public API; those of `limits` where the line has some."""
    checks = [
        checked("API.MODELS", lambda: _models(api, timeout)),
        checked("CHAT.ANSWER", lambda: _chat(api, canary, timeout)),
        checked("CHAT.REPEATS", lambda: _repeats(api, canary, timeout)),
        checked("CHAT.STREAM", lambda: _stream(api, canary, timeout)),
    ]
    if canary.expect is not None:
        checks.append(checked("CHAT.EXPECTED", lambda: _expected(api, canary, timeout)))
    if api.key is not None:
        checks.append(checked("API.KEY", lambda: _key(api, timeout)))
    if limits is not None:
        checks += guard_checks(api, canary.prompt, limits, timeout)
    return checks


def _models(api: Api, timeout: float) -> Check:
    names = api.models(timeout)
    return Check("API.MODELS", api.model in names, ", ".join(names), api.model)


def _chat(api: Api, canary: Canary, timeout: float) -> Check:
    answer = api.chat(canary.prompt, canary.max_tokens, timeout)
    counted = 0 < answer.completion_tokens <= canary.max_tokens and answer.prompt_tokens > 0
    observed = f"{answer.completion_tokens} tokens, {answer.finish}: {answer.text!r}"
    wanted = f"a text of 1 to {canary.max_tokens} tokens"
    return Check("CHAT.ANSWER", counted and bool(answer.text), observed, wanted)


def _repeats(api: Api, canary: Canary, timeout: float) -> Check:
    texts = {api.chat(canary.prompt, canary.max_tokens, timeout).text for _ in range(2)}
    observed = " / ".join(repr(text) for text in sorted(texts))
    return Check("CHAT.REPEATS", len(texts) == 1, observed, "the same greedy answer twice")


def _stream(api: Api, canary: Canary, timeout: float) -> Check:
    whole = api.chat(canary.prompt, canary.max_tokens, timeout).text
    pieces = list(api.stream(canary.prompt, canary.max_tokens, timeout))
    observed = f"{len(pieces)} pieces: {''.join(pieces)!r}"
    return Check("CHAT.STREAM", "".join(pieces) == whole, observed, f"pieces of {whole!r}")


def _expected(api: Api, canary: Canary, timeout: float) -> Check:
    text = api.chat(canary.prompt, canary.max_tokens, timeout).text
    wanted = canary.expect or ""
    return Check("CHAT.EXPECTED", wanted in text, repr(text), f"a text with {wanted!r}")


def _key(api: Api, timeout: float) -> Check:
    status = replace(api, key=None).http_status("/v1/models", timeout)
    observed = "no answer" if status is None else f"HTTP {status} without the key"
    return Check("API.KEY", status == 401, observed, "HTTP 401")
