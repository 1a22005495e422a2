"""What a task is: a prompt, and what tells a right answer from a wrong one."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

from tetraspark.measure.quality.rules import Rule

Kind = Literal["CODE", "JSON", "NUMBER", "FORMAT"]
KINDS: tuple[Kind, ...] = get_args(Kind)
ID = re.compile(r"(CODE|JSON|NUMBER|FORMAT)\.\d{3}")
How = Literal["bare", "new", "marked"]


@dataclass(frozen=True)
class Call:
    """A hidden call of the model's code: statements, an expression, and what it must come to.

    With `raises`, the name of a built-in exception that it must raise instead.
    """

    expression: str
    returns: Any = None
    setup: str = ""
    raises: str = ""


@dataclass(frozen=True)
class Code:
    """The answer's code must give what is wanted in every call."""

    calls: tuple[Call, ...]

    def __post_init__(self) -> None:
        if len(self.calls) < 2:
            raise ValueError("one call is guessed too easily")


@dataclass(frozen=True)
class Json:
    """The answer's JSON must be valid by a JSON Schema (draft 2020-12)."""

    schema: Mapping[str, Any] = field(hash=False)


@dataclass(frozen=True)
class Number:
    """The answer must give a number, within `within` of the value.

    `bare`: it is the only number of the answer. `new`: the only one that the prompt has not.
    `marked`: it stands alone on the one line `Answer: N`.
    """

    value: float
    how: How
    within: float = 0.0


@dataclass(frozen=True)
class Format:
    """The answer, without white space around it, must keep every rule."""

    rules: tuple[Rule, ...]


Scorer = Code | Json | Number | Format
SCORERS: Mapping[Kind, type[Scorer]] = {
    "CODE": Code,
    "JSON": Json,
    "NUMBER": Number,
    "FORMAT": Format,
}


@dataclass(frozen=True)
class Task:
    """One question. `max_tokens` are enough for a right answer without thinking."""

    id: str
    prompt: str
    scorer: Scorer
    max_tokens: int

    def __post_init__(self) -> None:
        if not ID.fullmatch(self.id) or not isinstance(self.scorer, SCORERS[self.kind]):
            raise ValueError(f"{self.id}: {type(self.scorer).__name__}")
        if self.max_tokens < 1 or not self.prompt.strip():
            raise ValueError(f"{self.id}: nothing to ask")

    @property
    def kind(self) -> Kind:
        """The kind, which begins the ID."""
        return cast(Kind, self.id.partition(".")[0])
