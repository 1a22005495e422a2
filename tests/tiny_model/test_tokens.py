"""Tokens: the same for a text in pieces and whole, a digit each, and what rows hold of them."""

from random import Random

import numpy as np
import pytest
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from scripts.tiny_model.conversation import (
    CHAT_TEMPLATE,
    PAD,
    SPECIAL,
    Conversation,
    Prose,
    Turn,
    asked,
)
from scripts.tiny_model.corpus import LENGTHS, corpus, rows_of, texts
from scripts.tiny_model.tasks import TASKS
from scripts.tiny_model.tokenizer import VOCABULARY, encode, train_tokenizer


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    some = texts(1, 0, divisor=20)
    return train_tokenizer("".join(part.text for part in text.parts) for text in some)


def test_the_vocabulary_is_full_and_the_special_tokens_come_first(tokenizer: Tokenizer) -> None:
    assert tokenizer.get_vocab_size() == VOCABULARY
    assert [tokenizer.token_to_id(token) for token in SPECIAL] == list(range(len(SPECIAL)))


def test_every_digit_is_a_token(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("12 + 345 = 6").tokens == [*"12", "Ġ+", "Ġ", *"345", "Ġ=", "Ġ", "6"]


def test_any_text_comes_back(tokenizer: Tokenizer) -> None:
    text = "Zwölf Boxkämpfer \n\n\t{'x': 3.14}  →  日本 \x00"
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_a_conversation_in_parts_is_what_the_template_and_the_engine_make(
    tokenizer: Tokenizer,
) -> None:
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer)
    fast.chat_template = CHAT_TEMPLATE
    random = Random(3)
    for task in TASKS:
        made = task.draw(random, "training")
        made = Conversation((Turn("system", "Be brief."), *made.turns))
        messages = [{"role": turn.role, "content": turn.text} for turn in made.turns]
        tokens, _ = encode(tokenizer, made)
        assert tokens == fast.apply_chat_template(messages, return_dict=False)
        assert made.prompt == fast.apply_chat_template(
            messages[:-1], tokenize=False, add_generation_prompt=True
        )


def test_only_what_the_assistant_says_and_its_end_are_learned(tokenizer: Tokenizer) -> None:
    turns = (*asked("What is 1 + 2?", "3").turns, *asked("And 4 + 5?", "9").turns)
    tokens, learned = encode(tokenizer, Conversation(turns))
    pairs = zip(tokens, learned, strict=True)
    assert tokenizer.decode([token for token, told in pairs if told], False) == "3</s>9</s>"


@pytest.mark.parametrize(("begins", "first"), [(True, "<s>"), (False, "A")])
def test_prose_is_learned_whole(tokenizer: Tokenizer, begins: bool, first: str) -> None:
    tokens, learned = encode(tokenizer, Prose("A clock.", begins))
    assert tokenizer.decode(tokens[:1], False) == first
    assert learned == [not begins, *[True] * (len(tokens) - 1)]


def test_rows_hold_the_texts_and_padding(tokenizer: Tokenizer) -> None:
    some = list(texts(5, 0, divisor=40))
    made = rows_of(tokenizer, some)
    assert sum(len(rows.tokens) for rows in made.values()) == len(some)
    assert set(made) == set(LENGTHS)
    encoded = sorted(encode(tokenizer, text)[0] for text in some)
    back = []
    for length, rows in made.items():
        assert rows.tokens.shape[1] == length + 1
        assert not (rows.learned & (rows.tokens == SPECIAL.index(PAD))).any()
        back += [[int(t) for t in row if t != SPECIAL.index(PAD)] for row in rows.tokens]
    assert sorted(back) == encoded


def test_a_text_longer_than_all_rows_is_told(
    tokenizer: Tokenizer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rows_of(tokenizer, [Prose("7" * 5000)]) == {}
    assert "left out: a text of 5002 tokens" in capsys.readouterr().err


def test_processes_draw_the_shards_that_one_would(tokenizer: Tokenizer) -> None:
    made = corpus(tokenizer, 5, shards=2, divisor=160, processes=2)
    one = [rows_of(tokenizer, texts(5, shard, divisor=160)) for shard in range(2)]
    for length, rows in made.items():
        wanted = np.concatenate([shard[length].tokens for shard in one if length in shard])
        assert np.array_equal(rows.tokens, wanted)
