"""What one request asks for, held against the limits. Pure; the engine's objects stay outside."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tetraspark.engine.guard_env import EFFORTS, GuardSettings

TOGGLES = ("thinking", "enable_thinking")
"""Names of one switch: SGLang 0.5.23 reads the one that the model's template has, in
`chat_template_kwargs` alone."""

WORDS = {"true": True, "false": False, "enabled": True, "disabled": False}
MOST_EFFORT = 0.99
WHOLE_EFFORT = 100


class RefusedRequest(ValueError):
    """A request that must not be run; `param` is the field at fault."""

    def __init__(self, message: str, param: str) -> None:
        super().__init__(message)
        self.param = param

    def as_error(self) -> dict[str, dict[str, str | None]]:
        """Return the body of the HTTP 400, as the OpenAI API has it."""
        return {
            "error": {
                "message": str(self),
                "type": "invalid_request_error",
                "param": self.param,
                "code": "invalid_value",
            }
        }


@dataclass(frozen=True)
class Cap:
    """The most tokens a request may generate, and why: as asked, not asked, or more asked."""

    tokens: int
    why: Literal["asked", "default", "limit"]
    asked: int | None = None

    def __str__(self) -> str:
        if self.why == "limit":
            return f"{self.tokens}; limit; asked={self.asked}"
        return f"{self.tokens}; {self.why}"


def cap_of(asked: int | None, settings: GuardSettings) -> Cap:
    """Return the cap of a request that asks for so many tokens, or (None) does not say."""
    if asked is None:
        return Cap(settings.default_new_tokens, "default")
    if asked > settings.max_new_tokens:
        return Cap(settings.max_new_tokens, "limit", asked)
    return Cap(asked, "asked", asked)


def refuse_many(choices: object, prompts: int, settings: GuardSettings) -> None:
    """Raise RefusedRequest when prompts times choices (`n`, `best_of`) are too many."""
    each = choices if isinstance(choices, int) else 1
    if each * prompts > settings.max_sequences:
        raise RefusedRequest(
            f"{prompts} prompt(s) with {each} answer(s) each: this server runs at most "
            f"{settings.max_sequences} a request",
            "n" if each > 1 else "prompt",
        )


def prompts_of(prompt: object) -> int:
    """Return how many prompts a completion asks for: a text or a list of token ids is one."""
    if not isinstance(prompt, list) or not prompt or isinstance(prompt[0], int):
        return 1
    return len(prompt)


def refuse_effort(efforts: Iterable[object], settings: GuardSettings) -> None:
    """Raise RefusedRequest for a reasoning effort that is none of the site's tiers."""
    for effort in efforts:
        if effort is not None and _tier(effort) not in settings.reasoning_efforts:
            raise unknown_effort(effort, settings)


def unknown_effort(effort: object, settings: GuardSettings) -> RefusedRequest:
    """Return the refusal of a reasoning effort, which names those there are."""
    names = [repr(name) for name in settings.reasoning_efforts if name != "number"]
    if "number" in settings.reasoning_efforts:
        names.append(f"a number from 0 to {MOST_EFFORT}")
    return RefusedRequest(
        f"reasoning_effort {str(effort)[:60]!r} is unknown; allowed: {', '.join(names)}",
        "reasoning_effort",
    )


def _tier(effort: object) -> str | None:
    """Return the tier of an effort: its name, or `number`; None for what is neither.

    A number is a fraction or, as V4.1's template has it, a whole number from 1 to 100.
    """
    if isinstance(effort, str):
        if effort in EFFORTS and effort != "number":
            return effort
        try:
            effort = float(effort) if "." in effort else int(effort)
        except ValueError:
            return None
    if isinstance(effort, bool) or not isinstance(effort, (int, float)):
        return None
    whole = isinstance(effort, int) and 1 <= effort <= WHOLE_EFFORT
    return "number" if whole or 0 <= effort <= MOST_EFFORT else None


def thinking_of(body: Mapping[str, Any]) -> bool | None:
    """Return whether a chat request's own words switch thinking on or off; None: it does not say.

    `thinking` and `enable_thinking` count, at the top and in `chat_template_kwargs`. Raises
    RefusedRequest when they contradict each other or one is no switch.
    """
    kwargs = body.get("chat_template_kwargs")
    places = [("", body), ("chat_template_kwargs.", kwargs if isinstance(kwargs, dict) else {})]
    said: dict[str, bool] = {}
    for prefix, place in places:
        for name in TOGGLES:
            value = _switch(place.get(name), prefix + name)
            if value is not None:
                said[prefix + name] = value
    if len(set(said.values())) > 1:
        texts = ", ".join(f"{name} is {str(value).lower()}" for name, value in said.items())
        raise RefusedRequest(f"thinking is switched both on and off: {texts}", next(iter(said)))
    return next(iter(said.values()), None)


def _switch(value: object, name: str) -> bool | None:
    """Return a switch: true, false, their words, or `{"type": "enabled"}`; None leaves it open."""
    if isinstance(value, dict):
        value = value.get("type")
        if value in (None, "adaptive", "auto"):
            return None
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in WORDS:
        return WORDS[value.lower()]
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    raise RefusedRequest(f"{name} is {str(value)[:60]!r}; allowed: true, false", name)
