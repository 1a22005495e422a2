"""The loop detector: what must end, what must not, and a naive oracle it always agrees with."""

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.guard_texts import LOOPS, RUNS, TEXTS, TOKENIZERS, coarse
from tetraspark.engine.guard_env import GuardSettings
from tetraspark.engine.guard_loop import Loop, LoopDetector, LoopRules, rules_of

RULES = rules_of(GuardSettings())
SMALL = LoopRules(ngram=3, repeats=2, same_token=8, line_repeats=3, longest=9)


def first_loop(
    rules: LoopRules, tokens: Iterable[int], newlines: frozenset[int] = frozenset()
) -> tuple[int, Loop] | None:
    """Return how many tokens were told when the first loop was found, and that loop."""
    detector = LoopDetector(rules, newlines.__contains__)
    for token in tokens:
        loop = detector.push(token)
        if loop is not None:
            return detector.count, loop
    return None


def oracle(
    rules: LoopRules, tokens: list[int], newlines: frozenset[int]
) -> tuple[int, Loop] | None:
    """The definition, read out: every end, every period, every token."""
    for size in range(1, len(tokens) + 1):
        end = tokens[:size]
        covers: list[int] = []
        for period in range(1, min(rules.longest, size - 1) + 1):
            run = 0
            while run < size - period and end[-1 - run] == end[-1 - run - period]:
                run += 1
            cover = run + period if run else 0
            piece = [token in newlines for token in end[-period:]]
            ends = sum(here and not piece[i - 1] for i, here in enumerate(piece))
            shortest = cover > max(covers, default=0)
            if shortest and cover >= rules.needed(period, ends == 1):
                return size, Loop(period, cover // period)
            covers.append(cover)
    return None


@st.composite
def repetitive(draw: st.DrawFn) -> list[int]:
    """Texts of few tokens, in which pieces come again, whole and broken."""
    text: list[int] = []
    for _ in range(draw(st.integers(1, 8))):
        piece = draw(st.lists(st.integers(0, 2), min_size=1, max_size=10))
        text += piece * draw(st.integers(1, 6))
        back = draw(st.integers(1, len(text)))
        text += text[-back:][: draw(st.integers(0, 12))]
    return text[:160]


@settings(max_examples=400, deadline=None)
@given(repetitive(), st.sampled_from([frozenset[int](), frozenset({2}), frozenset({1, 2})]))
def test_the_detector_finds_what_the_definition_finds_at_the_same_token(
    text: list[int], newlines: frozenset[int]
) -> None:
    assert first_loop(SMALL, text, newlines) == oracle(SMALL, text, newlines)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 400), max_size=700),
    st.lists(st.integers(0, 9), min_size=2, max_size=70),
)
def test_whatever_came_before_a_loop_is_found_when_it_is_complete(
    before: list[int], piece: list[int]
) -> None:
    found = first_loop(RULES, before + piece * 600)
    assert found is not None
    count, loop = found
    assert len(piece) % loop.period == 0 or count <= len(before) + 64
    assert count <= len(before) + max(RULES.short, RULES.repeats * len(piece)) + len(piece)


def test_the_window_forgets_what_is_too_long_ago_and_no_more() -> None:
    piece = list(range(1000))
    assert first_loop(RULES, [7, 8, 9] * 40 + piece * 4) == (4120, Loop(1000, 4))
    assert first_loop(RULES, list(range(1025)) * 6) is None


@pytest.mark.parametrize(
    ("tokens", "found"),
    [
        (list(range(32)) * 4, (128, Loop(32, 4))),
        ([7] * 64, (64, Loop(1, 64))),
        ([*range(500), *list(range(40)) * 9], (660, Loop(40, 4))),
        (list(range(31)) * 40, (512, Loop(31, 16))),
        ([1, 2] * 400, (512, Loop(2, 256))),
    ],
)
def test_a_loop_is_found_at_the_token_that_completes_it(
    tokens: list[int], found: tuple[int, Loop]
) -> None:
    assert first_loop(RULES, tokens) == found
    assert first_loop(RULES, tokens[: found[0] - 1]) is None


def test_lines_may_repeat_more_often_than_prose() -> None:
    newlines = frozenset({0})
    row = [*range(1, 12), 0]
    assert first_loop(RULES, row * 31, newlines) is None
    assert first_loop(RULES, row * 40, newlines) == (384, Loop(12, 32))
    wide = [*range(1, 40), 0]
    assert first_loop(RULES, wide * 12, newlines) is None
    assert first_loop(RULES, wide * 14, newlines) == (512, Loop(40, 12))
    paragraph = [*range(1, 200), 0, 0]
    assert first_loop(RULES, paragraph * 5, newlines) == (804, Loop(201, 4))
    two_lines = [*range(1, 20), 0, *range(30, 50), 0]
    assert first_loop(RULES, two_lines * 5, newlines) == (164, Loop(41, 4))


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize("name", TEXTS)
def test_a_real_text_goes_on(name: str, tokenizer: str) -> None:
    tokens, newlines = TOKENIZERS[tokenizer](TEXTS[name])
    assert first_loop(RULES, tokens, newlines) is None


@pytest.mark.parametrize("name", RUNS)
def test_a_run_of_one_sign_goes_on(name: str) -> None:
    tokens, newlines = coarse(RUNS[name])
    assert first_loop(RULES, tokens, newlines) is None


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize("name", LOOPS)
def test_a_runaway_text_ends(name: str, tokenizer: str) -> None:
    tokens, newlines = TOKENIZERS[tokenizer](LOOPS[name])
    found = first_loop(RULES, tokens, newlines)
    assert found is not None
    assert found[0] < len(tokens) // 2, "a loop is found long before its text ends"


def test_memory_does_not_grow_with_the_text() -> None:
    detector = LoopDetector(RULES, lambda token: False)
    for token in range(60_000):
        assert detector.push(token) is None
    held = len(detector._tail) + len(detector._recent) + len(detector._older)
    assert held <= 6 * RULES.window
