"""Scores one answer: None when it is right, else why it is wrong."""

import json
import math
from collections.abc import Mapping
from typing import Any

from tetraspark.measure.quality.extract import code_of, json_of, number_of
from tetraspark.measure.quality.inside.answer import plain
from tetraspark.measure.quality.proof import Proven
from tetraspark.measure.quality.rules import broken
from tetraspark.measure.quality.sandbox import Ran
from tetraspark.measure.quality.task import Call, Code, Format, Json, Number, Task

NEAR = 1e-9
LONGEST = 200_000
"""Characters of an answer that are looked at: no task asks for a hundredth of it."""


def fault_of(task: Task, answer: str, sandbox: Proven | None) -> str | None:
    """Return why an answer is wrong, or None. Code needs a proven sandbox.

    Raises RunError when the sandbox cannot be built, ValueError for code without a sandbox.
    """
    if not answer:
        return "no answer"
    if len(answer) > LONGEST:
        return f"an answer of {len(answer)} characters"
    match task.scorer:
        case Code() as code:
            if sandbox is None:
                raise ValueError("code of a model runs in a proven sandbox alone")
            return _code(code, code_of(answer), sandbox)
        case Json(schema):
            return _json(schema, answer)
        case Number() as rule:
            return _number(rule, answer, task.prompt)
        case Format(rules):
            return broken(answer, rules)


def _json(schema: Mapping[str, Any], answer: str) -> str | None:
    try:
        value = json_of(answer)
    except (ValueError, RecursionError) as error:
        return f"no JSON: {error}"[:200]
    import jsonschema  # Here, or every command would load it when it starts.

    found = jsonschema.Draft202012Validator(schema).iter_errors(value)
    worst = jsonschema.exceptions.best_match(found)
    return None if worst is None else f"{worst.json_path}: {worst.message}"[:200]


def _number(rule: Number, answer: str, prompt: str) -> str | None:
    try:
        found = number_of(answer, prompt, rule)
    except ValueError as error:
        return str(error)
    return None if abs(found - rule.value) <= rule.within else f"{found:g}"


def _code(code: Code, text: str, sandbox: Proven) -> str | None:
    ran = sandbox.answer(text, [(call.setup, call.expression) for call in code.calls])
    return _fault_of_run(code, ran)


def _fault_of_run(code: Code, ran: Ran) -> str | None:
    """Compare what came of the calls with what ought to: here, where the code has no reach."""
    if ran.late:
        return "it did not end in time"
    try:
        told = [{**json.loads(line)} for line in ran.output.splitlines()]
        if told and "failed" in told[0]:
            return f"it fails: {told[0]['failed']}"
        if len(told) != len(code.calls):
            return f"it ended after {len(told)} of {len(code.calls)} calls"
        wrong = [
            f"{call.expression}: {one.get('said') or json.dumps(one.get('value'))}"
            for call, one in zip(code.calls, told, strict=True)
            if not _fits(call, one)
        ]
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return "it wrote where its results are told"
    return wrong[0][:300] if wrong else None


def _fits(call: Call, told: Mapping[str, Any]) -> bool:
    if call.raises:
        return call.raises in told.get("raised", ())
    return "value" in told and same(told["value"], plain(call.returns))


def same(one: Any, other: Any) -> bool:
    """Tell whether two values as of `plain` are equal; a float may be near, true is not 1."""
    if _is_float(one) or _is_float(other):
        return _near(one, other)
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return bool(one == other)


def _is_float(value: Any) -> bool:
    return isinstance(value, dict) and list(value) == ["float"]


def _near(one: Any, other: Any) -> bool:
    """Compare where one is a float: a whole number is as good when it is the same."""
    found = [float(value["float"]) if _is_float(value) else value for value in (one, other)]
    if not all(type(value) in (int, float) for value in found):
        return False
    return math.isclose(found[0], found[1], rel_tol=NEAR, abs_tol=NEAR)
