"""Needles: found where they were put, asked so that one answer is right, short enough."""

import re
from random import Random

import pytest

from scripts.tiny_model.corpus import LENGTHS
from scripts.tiny_model.evaluation import FULL
from scripts.tiny_model.needle import needle, needle_at
from scripts.tiny_model.split import Split
from scripts.tiny_model.tokenizer import load_tokenizer
from tests.serving import ROOT


@pytest.mark.parametrize("split", ["training", "held out"])
def test_each_question_has_its_one_answer_in_the_text(split: Split) -> None:
    random = Random(9)
    for _ in range(200):
        turns = needle(random, split, random.randint(0, 3000)).turns
        text = turns[0].text
        for question, answer in zip(turns[::2], turns[1::2], strict=True):
            name = re.search(r"What is (the [^?]*)\?$", question.text)
            assert name
            values = re.findall(rf"T{name[1][1:]} is ([^.]*)\.", text)
            assert values == [answer.text]


@pytest.mark.parametrize("depth", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_a_needle_is_as_deep_as_asked(depth: float) -> None:
    random = Random(4)
    for _ in range(20):
        made = needle_at(random, "held out", 6000, depth)
        text = made.turns[0].text.rsplit("\n\n", 1)[0]
        assert 0.5 * 6000 < len(text) < 1.1 * 6000
        assert abs(text.index(f" is {made.answer}.") / len(text) - depth) < 0.05


def test_held_out_values_are_not_trained() -> None:
    def values(split: Split) -> set[tuple[str, str]]:
        random = Random(2)
        turns = [needle(random, split, 0).turns for _ in range(2000)]
        return {
            (question.text.rsplit("What is ")[-1].split(" of ")[0].rstrip("?"), answer.text)
            for one in turns
            for question, answer in zip(one[::2], one[1::2], strict=True)
        }

    trained, held_out = values("training"), values("held out")
    assert len(trained) > 1000
    assert len(held_out) > 1000
    assert not trained & held_out


def test_every_evaluated_text_leaves_room_for_its_answer() -> None:
    tokenizer = load_tokenizer(ROOT / "models" / "tiny")
    longest, random = max(FULL.fillers), Random(8)
    lengths = [
        len(tokenizer.encode(needle_at(random, "held out", longest, 0.5).prompt).ids)
        for _ in range(60)
    ]
    assert 0.7 * LENGTHS[-1] < max(lengths) < 0.97 * LENGTHS[-1]
