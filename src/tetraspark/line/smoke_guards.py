"""Smoke checks of the limits on requests: is the cap told, is an unknown tier refused?"""

from tetraspark.engine.guard_env import GuardSettings
from tetraspark.engine.guard_server import HEADER
from tetraspark.line.api import Api
from tetraspark.line.smoke_check import Check, checked

UNKNOWN = "no-such-effort"


def guard_checks(api: Api, prompt: str, limits: GuardSettings, timeout: float) -> list[Check]:
    """Ask for too much, twice; neither request generates more than a first token."""
    return [
        checked("GUARD.TOKENS", lambda: _tokens(api, prompt, limits, timeout)),
        checked("GUARD.EFFORT", lambda: _effort(api, prompt, limits, timeout)),
    ]


def _tokens(api: Api, prompt: str, limits: GuardSettings, timeout: float) -> Check:
    asked = limits.max_new_tokens + 1
    status, headers, _ = api.begin(prompt, {"max_tokens": asked, "stream": True}, timeout)
    told = headers.get(HEADER.lower(), "nothing")
    wanted = f"{limits.max_new_tokens}; limit; asked={asked}"
    observed = f"HTTP {status}, {HEADER}: {told}"
    return Check("GUARD.TOKENS", (status, told) == (200, wanted), observed, wanted)


def _effort(api: Api, prompt: str, limits: GuardSettings, timeout: float) -> Check:
    fields = {"reasoning_effort": UNKNOWN, "max_tokens": 1}
    status, _, text = api.begin(prompt, fields, timeout)
    named = all(effort in text for effort in limits.reasoning_efforts)
    wanted = f"HTTP 400 that names {', '.join(limits.reasoning_efforts)}"
    return Check("GUARD.EFFORT", status == 400 and named, f"HTTP {status}: {text[:200]}", wanted)
