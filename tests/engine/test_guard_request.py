"""What a request asks for against the limits, and the variables that carry them."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tetraspark.engine.guard_env import EFFORTS, PREFIX, GuardSettings, guard_settings
from tetraspark.engine.guard_request import (
    RefusedRequest,
    cap_of,
    prompts_of,
    refuse_effort,
    refuse_many,
    thinking_of,
)
from tetraspark.site.guards import MOST_COVER, MOST_NGRAM

LIMITS = GuardSettings(max_new_tokens=1000, default_new_tokens=200, max_sequences=4)
FEW = GuardSettings(reasoning_efforts=("none", "high", "max"))


@settings(deadline=None)
@given(st.none() | st.integers(1, 2000))
def test_a_cap_is_never_above_the_limit_and_says_why(asked: int | None) -> None:
    cap = cap_of(asked, LIMITS)
    assert cap.tokens <= LIMITS.max_new_tokens
    assert cap.why == ("default" if asked is None else "asked" if asked <= 1000 else "limit")
    assert cap.tokens == (200 if asked is None else min(asked, 1000))


@pytest.mark.parametrize(
    ("prompt", "count"),
    [("a", 1), ([1, 2, 3], 1), (["a", "b"], 2), ([[1], [2], [3]], 3), ([], 1), (None, 1)],
)
def test_prompts_are_counted(prompt: object, count: int) -> None:
    assert prompts_of(prompt) == count


def test_answers_times_prompts_are_bounded() -> None:
    refuse_many(2, 2, LIMITS)
    refuse_many(None, 4, LIMITS)
    with pytest.raises(RefusedRequest, match="at most 4 a request") as caught:
        refuse_many(5, 1, LIMITS)
    assert caught.value.param == "n"
    with pytest.raises(RefusedRequest) as caught:
        refuse_many(None, 5, LIMITS)
    assert caught.value.param == "prompt"


@pytest.mark.parametrize("effort", ["none", "high", "max", None])
def test_a_known_effort_passes(effort: object) -> None:
    refuse_effort([effort], FEW)


@pytest.mark.parametrize(
    "effort", ["low", "High", "", "number", 0.5, 50, "0.5", True, -1, 1e9, {}, [], "nan", "1e999"]
)
def test_an_unknown_effort_is_refused_with_the_tiers(effort: object) -> None:
    with pytest.raises(RefusedRequest, match=r"allowed: 'none', 'high', 'max'$") as caught:
        refuse_effort([None, effort], FEW)
    assert caught.value.as_error()["error"]["param"] == "reasoning_effort"
    json.dumps(caught.value.as_error())


@pytest.mark.parametrize("effort", [0, 0.5, 0.99, 1, 75, 100, "0.25", "30"])
def test_numbers_are_a_tier_of_their_own(effort: object) -> None:
    refuse_effort([effort], GuardSettings(reasoning_efforts=("high", "number")))


@pytest.mark.parametrize("effort", [1.5, 101, -0.1, "inf", float("nan"), False])
def test_a_number_out_of_range_is_no_tier(effort: object) -> None:
    with pytest.raises(RefusedRequest, match=r"a number from 0 to 0\.99"):
        refuse_effort([effort], GuardSettings())


@pytest.mark.parametrize(
    ("body", "thinks"),
    [
        ({}, None),
        ({"enable_thinking": True}, True),
        ({"thinking": {"type": "disabled"}}, False),
        ({"thinking": {"type": "adaptive"}}, None),
        ({"chat_template_kwargs": {"enable_thinking": False}}, False),
        ({"chat_template_kwargs": {"thinking": "true"}, "enable_thinking": 1}, True),
        ({"chat_template_kwargs": "no table"}, None),
    ],
)
def test_all_names_of_the_switch_are_one(body: dict[str, Any], thinks: bool | None) -> None:
    assert thinking_of(body) is thinks


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"thinking": True, "enable_thinking": False}, "both on and off"),
        ({"thinking": True, "chat_template_kwargs": {"thinking": False}}, "both on and off"),
        ({"enable_thinking": "perhaps"}, "enable_thinking is 'perhaps'; allowed: true, false"),
        ({"chat_template_kwargs": {"thinking": 3}}, "chat_template_kwargs.thinking is '3'"),
        ({"thinking": {"type": "deep"}}, "allowed: true, false"),
    ],
)
def test_a_switch_that_is_none_is_refused(body: dict[str, Any], words: str) -> None:
    with pytest.raises(RefusedRequest, match=words):
        thinking_of(body)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@settings(deadline=None)
@given(JSON, JSON, JSON)
def test_whatever_a_client_sends_is_taken_or_refused(one: Any, two: Any, three: Any) -> None:
    body = {"thinking": one, "enable_thinking": two, "chat_template_kwargs": three}
    try:
        thinking_of(body)
        refuse_effort((one, two), LIMITS)
    except RefusedRequest as error:
        json.dumps(error.as_error())


def test_settings_travel_as_variables() -> None:
    for limits in (GuardSettings(), LIMITS, FEW, GuardSettings(loop_abort=False)):
        variables = limits.variables()
        assert all(name.startswith(PREFIX) and value for name, value in variables.items())
        assert guard_settings(variables | {"PATH": "/bin"}) == limits
    assert guard_settings({"PATH": "/bin"}) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"MAX_NEW_TOKENS": None}, "MAX_NEW_TOKENS: not set"),
        ({"MAX_TOKENS": "3"}, "MAX_TOKENS: unknown"),
        ({"MAX_NEW_TOKENS": "many"}, "'many' is no number"),
        ({"LOOP_ABORT": "2"}, "neither 0 nor 1"),
        ({"LOOP_NGRAM": "1"}, "loop_ngram = 1: wanted at least 2"),
        ({"LOOP_NGRAM": "1025"}, "at most 1024 tokens a piece"),
        ({"DEFAULT_NEW_TOKENS": "40000"}, "at most max_new_tokens, 32768"),
        ({"REASONING_EFFORTS": "turbo"}, "wanted some of none, "),
        ({"REASONING_EFFORTS": ""}, "wanted some of none, "),
    ],
)
def test_variables_that_say_nothing_sound_are_refused(
    change: dict[str, str | None], words: str
) -> None:
    variables: dict[str, str | None] = {**GuardSettings().variables()}
    variables.update({PREFIX + name: value for name, value in change.items()})
    with pytest.raises(ValueError, match=words):
        guard_settings({name: value for name, value in variables.items() if value is not None})


def test_the_site_knows_the_detectors_bounds() -> None:
    GuardSettings(loop_ngram=MOST_NGRAM, loop_repeats=MOST_COVER // MOST_NGRAM)
    with pytest.raises(ValueError, match="at most"):
        GuardSettings(loop_ngram=MOST_NGRAM, loop_repeats=MOST_COVER // MOST_NGRAM + 1)
    assert EFFORTS[-1] == "number"
