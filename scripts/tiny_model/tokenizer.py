"""A byte-level BPE in which every digit is a token of its own, so that sums can be learned."""

from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from scripts.tiny_model.conversation import SPECIAL, Conversation, Prose

VOCABULARY = 1024


def train_tokenizer(texts: Iterable[str]) -> Tokenizer:
    """Return a tokenizer of VOCABULARY tokens; the special ones of `conversation` come first."""
    tokenizer = Tokenizer(models.BPE())
    digits = pre_tokenizers.Digits(individual_digits=True)
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def load_tokenizer(folder: Path) -> Tokenizer:
    """Return the tokenizer of a model's folder."""
    return Tokenizer.from_str((folder / "tokenizer.json").read_text(encoding="utf-8"))


def encode(tokenizer: Tokenizer, text: Conversation | Prose) -> tuple[list[int], list[bool]]:
    """Return the tokens of a text, and for each whether the model learns to write it."""
    tokens: list[int] = []
    learned: list[bool] = []
    for part in text.parts:
        ids = tokenizer.encode(part.text, add_special_tokens=False).ids
        tokens += ids
        learned += [part.learned] * len(ids)
    return tokens, learned
