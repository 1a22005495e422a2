"""What is taken out of an answer, and code that cheats."""

import math
import time
from typing import Any

import pytest

from tests.measure.quality.cheats import CHEATS
from tests.measure.quality.sandboxes import needed
from tetraspark.measure.quality.catalogue import TASKS
from tetraspark.measure.quality.extract import code_of, json_of, without_thought
from tetraspark.measure.quality.inside.answer import plain
from tetraspark.measure.quality.numerals import numbers
from tetraspark.measure.quality.proof import Proven
from tetraspark.measure.quality.sandbox import Ran
from tetraspark.measure.quality.scoring import fault_of, same
from tetraspark.measure.quality.task import Call, Code, Task

BY_ID = {task.id: task for task in TASKS}
ADD = BY_ID["CODE.001"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x = 1", "x = 1"),
        ("Look:\n```python\nx = 1\n```\nThat is it.", "x = 1\n"),
        ("```\nx = 1\n```\nbetter:\n```py\nx = 2\n```", "x = 2\n"),
        ("```python\nx = 1", "```python\nx = 1"),
    ],
)
def test_code_of_an_answer(text: str, code: str) -> None:
    assert code_of(text) == code


@pytest.mark.parametrize(
    "text",
    [
        "a" + "\n" * 60_000 + "b",
        "```python\n" * 20_000,
        "answer" + "\n" * 60_000,
        "!" * 60_000,
        "<think>" * 20_000,
        "1,234" * 30_000,
        "word-" * 30_000,
    ],
)
def test_no_answer_takes_long_to_read(text: str) -> None:
    began = time.monotonic()
    for task in TASKS:
        if task.kind != "CODE":
            assert fault_of(task, without_thought(text), None)
    code_of(text)
    assert time.monotonic() - began < 5


def test_a_boundless_answer_is_wrong() -> None:
    assert fault_of(BY_ID["NUMBER.001"], "42 " * 100_000, None) == "an answer of 300000 characters"


def test_thoughts_are_no_answer() -> None:
    assert without_thought("<think>Is it 41?\n</think>\n\n42\r\n") == "42"
    assert without_thought("<think>Is it 42?") == "<think>Is it 42?"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1]} and more', {"a": [1]}),
        ('As JSON: [1, {"b": null}]', [1, {"b": None}]),
        ('```json\n{"a": "}"}\n```', {"a": "}"}),
    ],
)
def test_json_of_an_answer(text: str, value: object) -> None:
    assert json_of(text) == value


@pytest.mark.parametrize(
    "text", ["none", '{"a": 1', '{"a": {"b": 1}', '```json\n{"a": 1} {"a": 2}\n```', "[NaN]"]
)
def test_no_json_of_an_answer(text: str) -> None:
    with pytest.raises(ValueError, match=r"JSON|Expecting|Extra data"):
        json_of(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("7, 23, 42", [7, 23, 42]),
        ("1,180,103 or 1,18", [1180103, 1, 18]),
        ("31-58 is -27, or \N{MINUS SIGN}27", [31, 58, -27, -27]),
        ("97.5. v2 x3 4th", [97.5]),
        ("**42**", [42]),
        ("a 3-way", [3]),
    ],
)
def test_numbers_of_a_text(text: str, found: list[float]) -> None:
    assert numbers(text) == found


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (2.0, 2, True),
        (0.1 + 0.2, 0.3, True),
        (10**18 + 1, 10**18, False),
        (True, 1, False),
        (True, 1.0, False),
        ([1], (1,), False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({1, 2}, {2, 1}, True),
        ({1: 2}, {1: 3}, False),
        ("1", 1, False),
        (None, False, False),
        (math.nan, 1.0, False),
        ([1, 2], [1], False),
    ],
)
def test_values_are_the_same_by_type_and_value(one: object, other: object, equal: bool) -> None:
    assert same(plain(one), plain(other)) is equal


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("CODE.001", "def add(a, b): return a - b"),
        ("CODE.001", "def add(a, b): print(a + b)"),
        ("CODE.001", "def plus(a, b): return a + b"),
        ("CODE.001", "def add(a, b) return a + b"),
        ("CODE.001", "I am a tiny model of four layers."),
        ("CODE.002", "def larger(a, b): return b"),
        ("CODE.003", "def is_even(a): return True"),
        ("CODE.003", "def is_even(a): return 1 - a % 2"),
        ("CODE.006", "def factorial(n): return 120"),
        ("CODE.009", "def is_palindrome(text): return text == text[::-1]"),
        ("CODE.012", "def seconds(text): raise ValueError"),
        ("CODE.025", "calculate = eval"),
    ],
)
def test_code_that_is_wrong(name: str, answer: str) -> None:
    assert fault_of(BY_ID[name], answer, needed())


@pytest.mark.parametrize("code", CHEATS.values(), ids=CHEATS)
def test_code_that_cheats_is_wrong(code: str) -> None:
    assert fault_of(ADD, code, needed())


def test_an_exception_of_the_right_name_is_not_the_built_in_one() -> None:
    task = Task("CODE.001", "?", Code((Call("f()", raises="ValueError"),) * 2), 8)
    fake = "class ValueError(Exception): pass\ndef f(): raise ValueError"
    kind = "class Mine(ValueError): pass\ndef f(): raise Mine"
    assert fault_of(task, fake, needed())
    assert fault_of(task, kind, needed()) is None


def test_what_is_wanted_is_not_inside() -> None:
    """The request that goes into the sandbox holds the calls and nothing to compare with."""
    seen: list[tuple[str, list[tuple[str, str]]]] = []

    class Watched:
        def answer(self, code: str, calls: list[tuple[str, str]]) -> Ran:
            seen.append((code, calls))
            return Ran('{"value": 1180103}\n' * 2, False)

    calls = (Call("f(1)", 1180103), Call("f(2)", 1180103))
    watched: Any = Watched()
    assert fault_of(Task("CODE.001", "?", Code(calls), 8), "x", watched) is None
    assert seen == [("x", [("", "f(1)"), ("", "f(2)")])]


def test_code_without_a_proven_sandbox_does_not_run() -> None:
    with pytest.raises(ValueError, match="proven sandbox alone"):
        fault_of(ADD, "def add(a, b): return a + b", None)


def test_code_that_ends_never_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    late = Ran("", True)
    monkeypatch.setattr(Proven, "answer", lambda *_: late)
    assert fault_of(ADD, "while True: pass", needed()) == "it did not end in time"
