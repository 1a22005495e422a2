"""The corpus: every answer is checked by other means, and no held-out question is trained."""

import json
import re
from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from scripts.tiny_model import arithmetic
from scripts.tiny_model.conversation import Conversation
from scripts.tiny_model.corpus import texts
from scripts.tiny_model.functions import FUNCTIONS
from scripts.tiny_model.lexicon import KINDS, NUMBERS
from scripts.tiny_model.split import Split, split_of
from scripts.tiny_model.tasks import TASKS

DRAWS = 300
SIGNS = {"plus": "+", "minus": "-", "times": "*"}
TASK = {task.name: task for task in TASKS}
NUMBERS_GIVEN = (3, -4, 10)
LISTS_GIVEN = ([3, 1, 2], [4, 8], [7])
MEANT: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: sum((a, b)),
    "subtract": lambda a, b: sum((a, -b)),
    "multiply": lambda a, b: int.__mul__(a, b),
    "divide": lambda a, b: int.__truediv__(a, b),
    "double": lambda a: a + a,
    "square": lambda a: a**2,
    "negate": lambda a: 0 - a,
    "larger": max,
    "smaller": min,
    "is_even": lambda a: not a & 1,
    "is_odd": lambda a: bool(a & 1),
    "length": lambda items: sum(1 for _ in items),
    "first": lambda items: next(iter(items)),
    "last": lambda items: next(reversed(items)),
    "reverse": lambda items: list(reversed(items)),
    "sort": lambda items: sorted(items),
    "total": sum,
    "count_even": lambda items: sum(not item & 1 for item in items),
    "largest": max,
    "factorial": lambda n: {3: 6, -4: 1, 10: 3628800}[n],
    "fibonacci": lambda n: {3: 2, -4: 0, 10: 55}[n],
}


def drawn(name: str, split: Split, seed: int = 5) -> list[tuple[str, str]]:
    """Return questions and answers of a task."""
    random = Random(seed)
    some = [TASK[name].draw(random, split) for _ in range(DRAWS)]
    return [(conversation.turns[-2].text, conversation.answer) for conversation in some]


@pytest.mark.parametrize("split", ["training", "held out"])
@pytest.mark.parametrize("name", ["addition", "subtraction", "product"])
def test_arithmetic_is_right(name: str, split: Split) -> None:
    for question, answer in drawn(name, split):
        for word, sign in SIGNS.items():
            question = question.replace(f" {word} ", f" {sign} ")
        numbers = [int(number) for number in re.findall(r"\d+", question)]
        if "How many" in question:
            assert int(answer) == numbers[0] + numbers[1] * (1 if "gets" in question else -1)
        else:
            formula = re.search(r"\d+ [-+*] \d+", question)
            assert formula
            assert int(answer) == eval(formula[0])


@pytest.mark.parametrize("split", ["training", "held out"])
def test_comparisons_and_sorting_are_right(split: Split) -> None:
    for question, answer in drawn("comparison", split):
        first, second = (int(number) for number in re.findall(r"\d+", question))
        larger = first if first - second > 0 else second
        assert int(answer) == (larger if "larger" in question else first + second - larger)
    for question, answer in drawn("sorting", split):
        numbers = [int(number) for number in re.findall(r"\d+", question)]
        told = [int(number) for number in answer.split(", ")]
        assert all(one <= two for one, two in pairwise(told))
        assert sorted(told) == sorted(numbers)


@pytest.mark.parametrize("split", ["training", "held out"])
def test_lists_counts_and_tables_are_right(split: Split) -> None:
    for question, answer in drawn("listing", split):
        asked = re.fullmatch(r"(?:List|Name|Give me)(?: the first)? (\w+) (?:of )?(.*)\.", question)
        assert asked
        wanted = NUMBERS.index(asked[1]) if asked[1] in NUMBERS else int(asked[1])
        items = KINDS.get(asked[2].removeprefix("of "), tuple(asked[2].split(", ")))
        told = answer.split(", ")
        assert len(set(told)) == wanted < len(items) + 1
        assert items[:wanted] == tuple(told)
    for question, answer in drawn("counting", split):
        first, last = (int(number) for number in re.findall(r"\d+", question))
        numbers = [int(number) for number in answer.split(", ")]
        assert (numbers[0], numbers[-1], len(numbers)) == (first, last, abs(last - first) + 1)
        assert {two - one for one, two in pairwise(numbers)} <= {1, -1}
    for question, answer in drawn("table", split):
        first, last = (int(number) for number in re.findall(r"\d+", question))
        rows = re.findall(r"^\| (\d+) \| (\d+) \|$", answer, re.MULTILINE)
        assert [int(row[0]) for row in rows] == [*range(first, last + 1)]
        assert all(int(double) == int(number) + int(number) for number, double in rows)


@pytest.mark.parametrize("split", ["training", "held out"])
def test_json_parses_and_says_what_was_asked(split: Split) -> None:
    for question, answer in drawn("JSON object", split):
        for name, value in json.loads(answer).items():
            assert f"{name} {value}" in question
        assert len(json.loads(answer)) == question.count(",") + 2
    for question, answer in drawn("JSON list", split):
        number = re.search(r"\d+", question)
        rows = json.loads(answer)
        assert number
        assert [row["id"] for row in rows] == [*range(1, int(number[0]) + 1)]
        assert len({json.dumps(row) for row in rows}) == len(rows)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_functions_do_what_they_are_called(function: Any) -> None:
    space: dict[str, Any] = {}
    exec(function.source("made"), space)
    cases: list[tuple[Any, ...]] = [(one,) for one in NUMBERS_GIVEN]
    if function.parameters == "a, b":
        cases = [(one, two) for one in NUMBERS_GIVEN for two in (7, -2)]
    elif function.parameters == "items":
        cases = [(one,) for one in LISTS_GIVEN]
    for case in cases:
        assert space["made"](*case) == MEANT[function.name](*case)


@pytest.mark.parametrize("split", ["training", "held out"])
def test_code_compiles_under_the_names_that_were_asked_for(split: Split) -> None:
    for name in ("function", "module"):
        for question, answer in drawn(name, split):
            space: dict[str, Any] = {}
            exec(answer, space)
            wanted = re.search(r"called (\w+)", question)
            if wanted:
                assert wanted[1] in space
            if name == "module":
                names = question.removeprefix("Write a Python file with the functions ")
                assert set(names.rstrip(".").split(", ")) < set(space)


@pytest.mark.parametrize("split", ["training", "held out"])
def test_copies_are_what_was_said(split: Split) -> None:
    assert all(question.endswith(f": {answer}") for question, answer in drawn("copying", split))


NOTHING_TO_HOLD_OUT = {"small talk"}
HELD_BY_VALUE = {"needle, short", "needle, medium"}  # see test_needle.py


@pytest.mark.parametrize("name", sorted(TASK.keys() - NOTHING_TO_HOLD_OUT - HELD_BY_VALUE))
def test_no_held_out_question_is_trained(name: str) -> None:
    trained = {question for question, _ in drawn(name, "training")}
    held_out = {question for question, _ in drawn(name, "held out")}
    assert len(held_out) > 5
    assert not trained & held_out


def test_the_corpus_has_no_held_out_sum_in_either_order() -> None:
    pairs = set()
    for text in texts(3, 0, divisor=20):
        if isinstance(text, Conversation):
            asked = " ".join(turn.text for turn in text.turns if turn.role == "user")
            pairs |= {
                (int(one), int(two)) for one, two in re.findall(r"(\d+) (?:\+|plus) (\d+)", asked)
            }
    assert len(pairs) > 100
    assert {split_of(arithmetic.addition_key(pair)) for pair in pairs} == {"training"}
    assert {split_of(arithmetic.addition_key(pair[::-1])) for pair in pairs} == {"training"}


def test_one_sum_in_ten_is_held_out() -> None:
    pairs = [(one, two) for one in range(100) for two in range(one, 100)]
    share = sum(split_of(arithmetic.addition_key(pair)) == "held out" for pair in pairs)
    assert 0.08 < share / len(pairs) < 0.12


def test_a_held_out_product_is_trained_the_other_way_round() -> None:
    held = [
        (one, two)
        for one in range(13)
        for two in range(13)
        if arithmetic.product_split((one, two)) == "held out"
    ]
    assert len(held) > 3
    assert {arithmetic.product_split((two, one)) for one, two in held} == {"training"}


def test_the_same_seed_draws_the_same_texts() -> None:
    assert list(texts(1, 2, divisor=40)) == list(texts(1, 2, divisor=40))
    assert list(texts(1, 2, divisor=40)) != list(texts(1, 3, divisor=40))
