"""What of an answer is scored: its code, its JSON, its number. Pure."""

import json
import re
from typing import Any

from tetraspark.measure.quality.numerals import numbers
from tetraspark.measure.quality.task import Number

FENCE = "```"
THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
# Within its line: what could run over the lines' ends would take quadratic time for many of them.
MARKED = re.compile(r"^[^\w\n]*answer[^\w\n]*:(.*)$", re.IGNORECASE | re.MULTILINE)


def without_thought(text: str) -> str:
    """Return an answer without the thoughts that some servers leave in it, and trimmed."""
    return THOUGHT.sub("", text.replace("\r\n", "\n")).strip()


def code_of(text: str) -> str:
    """Return the code: that of the only fenced block, or the last of several, or all of it."""
    blocks = _blocks(text)
    return blocks[-1] if blocks else text


def json_of(text: str) -> Any:
    """Return the JSON value: of the first fenced block, else the first one that stands in it.

    Raises ValueError when there is none.
    """
    blocks = _blocks(text)
    begins = [place for place in (text.find("{"), text.find("[")) if place >= 0]
    if not blocks and not begins:
        raise ValueError("no JSON value")
    try:
        return _strict(blocks[0]) if blocks else _DECODER.raw_decode(text[min(begins) :])[0]
    except RecursionError as error:
        raise ValueError("a JSON value that is nested too deeply") from error


def number_of(text: str, prompt: str, rule: Number) -> float:
    """Return the number an answer gives by a task's rule. Raises ValueError when it gives none."""
    if rule.how == "marked":
        lines = MARKED.findall(text)
        if len(lines) != 1:
            raise ValueError(f"{len(lines)} lines `Answer: N`")
        return _only(numbers(lines[0]))
    found = numbers(text)
    if rule.how == "new":
        asked = {abs(number) for number in numbers(prompt)}
        found = [number for number in found if abs(number) not in asked]
    return _only(found)


def _blocks(text: str) -> list[str]:
    """Return what is in the fenced blocks; one that is not closed is none."""
    found: list[str] = []
    begun: list[str] | None = None
    for line in text.split("\n"):
        mark = line.strip(" \t")
        if begun is None:
            begun = [] if mark.startswith(FENCE) else None
        elif mark == FENCE:
            found.append("".join(begun))
            begun = None
        else:
            begun.append(f"{line}\n")
    return found


def _only(found: list[float]) -> float:
    different = list(dict.fromkeys(found))
    if len(different) != 1:
        said = ", ".join(f"{number:g}" for number in different[:6]) or "none"
        raise ValueError(f"not one number but {said}")
    return different[0]


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object that names a key twice: which of the two is meant?"""
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key stands twice in an object")
    return dict(pairs)


_DECODER = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_no_twins)


def _strict(text: str) -> Any:
    return _DECODER.decode(text.strip())
