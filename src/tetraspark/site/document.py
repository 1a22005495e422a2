"""TOML text as a plain document, with syntax errors a person can find."""

import re
import tomllib
from typing import Any

from tetraspark.errors import Problem, UsageError
from tetraspark.site.keypath import dotted
from tetraspark.site.lines import KeyLines, key_lines
from tetraspark.site.secret import redact
from tetraspark.site.source import Source

_PLACE = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)")


def parse_toml(source: Source) -> tuple[dict[str, Any], KeyLines]:
    """Return the document (lists as tuples) and its key lines; UsageError for a syntax error."""
    try:
        document = {key: _frozen(value) for key, value in tomllib.loads(source.text).items()}
        return document, key_lines(source.text)
    except RecursionError:
        problem = Problem(str(source.path), "values nested too deep", "a site file", "flatten it")
    except ValueError as error:
        problem = _syntax_problem(source, str(error))
    raise UsageError(problem)


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, dict):
        return {key: _frozen(item) for key, item in value.items()}
    return value


def _syntax_problem(source: Source, message: str) -> Problem:
    lines = source.text.split("\n")
    line, column = _place(message, lines)
    text = lines[line - 1].strip() if line <= len(lines) else ""
    what = _PLACE.sub("", message)
    repeat = _repeat_at(source.text, line)
    fix = repeat or _hint(text)
    where = f"{source.where(line)}:{column}"
    return Problem(where, f"{what}: {redact(text[:1000])[:100]}", "valid TOML", fix)


def _place(message: str, lines: list[str]) -> tuple[int, int]:
    place = _PLACE.search(message)
    if place is None:
        # Python's own limit on the digits of an integer, which tomllib passes on without a place
        longest = max(lines, key=len)
        return lines.index(longest) + 1, 1
    if place.group(1) is None:
        last = max(1, len(lines) - (not lines[-1]))
        return last, len(lines[last - 1]) + 1
    return int(place.group(1)), int(place.group(2))


def _repeat_at(text: str, line: int) -> str:
    head = "\n".join(text.split("\n")[:line])
    try:
        repeats = key_lines(head).repeats
    except (ValueError, RecursionError):
        return ""
    for repeat in repeats:
        if repeat.again == line:
            return f"`{dotted(repeat.path)}` is already set in line {repeat.first}; keep one"
    return ""


def _hint(text: str) -> str:
    if re.match(r"(export\s+)?[A-Z][A-Z0-9_]*=", text):
        return "this looks like a shell profile: tetraspark import-env FILE"
    if re.match(r"[\w.-]+\s*=\s*[A-Za-z~/]", text):
        return "put text in double quotes"
    return "correct the line"
