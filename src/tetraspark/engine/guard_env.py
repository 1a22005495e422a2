"""The variables through which a plan tells the plugin its limits on requests; needs no torch."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

PREFIX = "TETRASPARK_GUARD_"

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "ultra", "max", "number")
"""Reasoning efforts that SGLang 0.5.23 knows; `number` stands for a fraction from 0 to 0.99."""

MAX_PIECE = 1024
"""Tokens: the longest piece that is looked for, and the most that `loop_ngram` may be."""

MAX_COVER = 16_384
"""Tokens: the most that `loop_ngram` times `loop_repeats` may be."""


@dataclass(frozen=True)
class GuardSettings:
    """Limits on one request (docs/guards.md); the defaults are those of a site's [guards].

    `max_new_tokens` and `loop_ngram`, `loop_repeats` as the pinned launchers of the dsv4.1 branch
    have them. Raises ValueError for a value that no guard can work with.
    """

    max_new_tokens: int = 32_768
    default_new_tokens: int = 32_768
    max_sequences: int = 8
    loop_abort: bool = True
    loop_ngram: int = 32
    loop_repeats: int = 4
    loop_same_token: int = 64
    loop_line_repeats: int = 32
    reasoning_efforts: tuple[str, ...] = EFFORTS

    def __post_init__(self) -> None:
        for name, least in (
            ("max_new_tokens", 1),
            ("default_new_tokens", 1),
            ("max_sequences", 1),
            ("loop_ngram", 2),
            ("loop_repeats", 2),
            ("loop_same_token", 8),
            ("loop_line_repeats", 2),
        ):
            if getattr(self, name) < least:
                raise ValueError(f"guards: {name} = {getattr(self, name)}: wanted at least {least}")
        if self.default_new_tokens > self.max_new_tokens:
            raise ValueError(
                f"guards: default_new_tokens = {self.default_new_tokens}: wanted at most "
                f"max_new_tokens, {self.max_new_tokens}"
            )
        if self.loop_ngram > MAX_PIECE or self.loop_ngram * self.loop_repeats > MAX_COVER:
            raise ValueError(
                f"guards: loop_ngram = {self.loop_ngram}, loop_repeats = {self.loop_repeats}: "
                f"wanted at most {MAX_PIECE} tokens a piece and {MAX_COVER} in all"
            )
        unknown = [effort for effort in self.reasoning_efforts if effort not in EFFORTS]
        if unknown or not self.reasoning_efforts:
            raise ValueError(f"guards: reasoning_efforts: wanted some of {', '.join(EFFORTS)}")

    def variables(self) -> dict[str, str]:
        """Return the variables that say this, one for each field, in the fields' order."""
        return {variable(name): _text(value) for name, value in asdict(self).items()}


def variable(field: str) -> str:
    """Return the variable of a field."""
    return PREFIX + field.upper()


def guard_settings(env: Mapping[str, str]) -> GuardSettings | None:
    """Return the settings, or None when the plan asks for no guards.

    Raises ValueError when a variable is missing, unknown, or holds no such value.
    """
    present = {name for name in env if name.startswith(PREFIX)}
    if not present:
        return None
    fields = GuardSettings.__dataclass_fields__
    names = {variable(field) for field in fields}
    if present != names:
        off = min(present ^ names)
        raise ValueError(f"{off}: {'not set' if off in names else 'unknown'}")
    values = {field: _value(field, env[variable(field)]) for field in fields}
    return GuardSettings(**values)  # type: ignore[arg-type]  # each is read as its field's type


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(value)
    return str(int(value)) if isinstance(value, int) else str(value)


def _value(field: str, text: str) -> int | bool | tuple[str, ...]:
    if field == "reasoning_efforts":
        return tuple(text.split(","))
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise ValueError(f"{variable(field)}: {text!r} is no number")
    if field == "loop_abort":
        if text not in ("0", "1"):
            raise ValueError(f"{variable(field)}: {text!r} is neither 0 nor 1")
        return text == "1"
    return int(text)
