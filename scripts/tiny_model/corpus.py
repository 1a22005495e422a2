"""The corpus: shards drawn from seeds, encoded, and padded to a few row lengths."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from multiprocessing import get_context
from random import Random

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from scripts.tiny_model.conversation import PAD, SPECIAL, Conversation, Prose
from scripts.tiny_model.needle import needle
from scripts.tiny_model.progress import say
from scripts.tiny_model.prose import prose
from scripts.tiny_model.tasks import LONG_NEEDLES, TASKS
from scripts.tiny_model.tokenizer import encode
from scripts.tiny_model.variation import varied

# Row lengths in tokens: a text goes to the shortest that holds it, so that little is padding.
LENGTHS = (48, 160, 512, 1536, 4096)
CHATS, PROSES, LONG_EACH = 20_000, 1_000, 160  # of one shard


@dataclass(frozen=True)
class Rows:
    """Texts of one row length L: tokens int16 (rows, L + 1), learned bool of the same shape.

    One column more than L, as inputs are all columns but the last, and targets all but the first.
    """

    tokens: NDArray[np.int16]
    learned: NDArray[np.bool_]

    def __post_init__(self) -> None:
        if self.tokens.shape != self.learned.shape or self.tokens.ndim != 2:
            raise ValueError(f"tokens {self.tokens.shape}, learned {self.learned.shape}")


def texts(seed: int, shard: int, divisor: int = 1) -> Iterator[Conversation | Prose]:
    """Yield the training texts of a shard, 1/divisor of their usual number."""
    random = Random(f"{seed} {shard}")
    weights = [task.weight for task in TASKS]
    earlier = TASKS[0].draw(random, "training")
    for task in random.choices(TASKS, weights, k=CHATS // divisor):
        drawn = task.draw(random, "training")
        yield varied(random, drawn, earlier)
        earlier = drawn
    for _ in range(PROSES // divisor):
        yield prose(random)
    for least, most in LONG_NEEDLES:
        for _ in range(LONG_EACH // divisor):
            yield needle(random, "training", random.randint(least, most))


def rows_of(tokenizer: Tokenizer, some: Iterable[Conversation | Prose]) -> dict[int, Rows]:
    """Return texts as padded rows by row length; a text longer than all is left out and told."""
    encoded = defaultdict(list)
    for text in some:
        tokens, learned = encode(tokenizer, text)
        length = next((one for one in LENGTHS if len(tokens) <= one), None)
        if length is None:
            say(f"left out: a text of {len(tokens)} tokens")
        else:
            encoded[length].append((tokens, learned))
    return {length: _padded(length, encoded[length]) for length in LENGTHS if encoded[length]}


def corpus(
    tokenizer: Tokenizer, seed: int, shards: int, divisor: int, processes: int
) -> dict[int, Rows]:
    """Return all rows of that many shards; the same for any number of processes."""
    made: dict[int, list[Rows]] = defaultdict(list)
    # Forking a process in which a tokenizer has started threads can hang.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        jobs = pool.map(
            _shard, repeat(tokenizer.to_str()), repeat(seed), range(shards), repeat(divisor)
        )
        for done, shard in enumerate(jobs, start=1):
            for length, rows in shard.items():
                made[length].append(rows)
            if done % 8 == 0:
                say(f"corpus: {done} of {shards} shards")
    return {length: _joined(some) for length, some in sorted(made.items())}


def _shard(tokenizer: str, seed: int, shard: int, divisor: int) -> dict[int, Rows]:
    return rows_of(Tokenizer.from_str(tokenizer), texts(seed, shard, divisor))


def _joined(some: list[Rows]) -> Rows:
    tokens = np.concatenate([rows.tokens for rows in some])
    return Rows(tokens, np.concatenate([rows.learned for rows in some]))


def _padded(length: int, encoded: list[tuple[list[int], list[bool]]]) -> Rows:
    shape = (len(encoded), length + 1)
    rows = Rows(np.full(shape, SPECIAL.index(PAD), np.int16), np.zeros(shape, np.bool_))
    for row, (tokens, learned) in enumerate(encoded):
        rows.tokens[row, : len(tokens)] = tokens
        rows.learned[row, : len(learned)] = learned
    return rows
