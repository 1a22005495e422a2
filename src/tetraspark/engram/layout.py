"""Which rows of an Engram table a rank owns, from the checkpoint's config.json. Pure."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

from tetraspark.site.engines import BRANCH, RELEASE

Split = Literal["columns", "rows"]

SPLITS: Mapping[str, Split] = {BRANCH: "rows", RELEASE: "columns"}
"""Engine -> how it divides a table. SGLang 0.5.23 keeps whole hash columns together where the ranks
divide them (srt/layers/engram.py, `shard_range`); the branch's adapters take equal rows."""

SCALE_BLOCK = 32
"""Weights of one scale: FP8_BLOCK_SIZE of the engine."""

# Miller-Rabin with these bases is exact below 3.3e24 (Sorenson and Webster, 2015).
_BASES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)


@dataclass(frozen=True)
class Table:
    """The hash table of one layer: `rows` of `dim` FP8 weights and `dim / 32` E8M0 scales.

    `columns` are the bounds of its hash columns: column c owns rows columns[c] to columns[c + 1].
    """

    layer: int
    rows: int
    dim: int
    columns: tuple[int, ...]

    @property
    def scales(self) -> int:
        """Scales of a row, one byte each."""
        return self.dim // SCALE_BLOCK

    @property
    def row_bytes(self) -> int:
        """Bytes of a row: its weights and its scales."""
        return self.dim + self.scales


def shard_range(
    rows: int, columns: tuple[int, ...], split: Split, rank: int, tp: int
) -> tuple[int, int]:
    """Return the rows [first, end) of a rank. Raises ValueError for a rank that there is not.

    With "columns", ranks that do not divide the columns get equal rows, as in the engine.
    """
    if not 0 <= rank < tp:
        raise ValueError(f"rank {rank} of {tp}")
    count = len(columns) - 1
    if split == "columns" and count % tp == 0:
        each = count // tp
        return columns[rank * each], columns[(rank + 1) * each]
    return rows * rank // tp, rows * (rank + 1) // tp


def read_tables(text: str) -> tuple[Table, ...]:
    """Return the tables that a config.json describes, in the order of their layers.

    Raises ValueError saying what is missing or contradicts itself.
    """
    config = _config(text)
    layers, rows = _numbers(config, "engram_layer_ids"), _numbers(config, "engram_num_embeddings")
    if not layers:
        raise ValueError("engram_layer_ids is empty: this checkpoint has no Engram tables")
    if len(rows) != len(layers):
        raise ValueError(f"{len(layers)} engram_layer_ids and {len(rows)} engram_num_embeddings")
    dim = _number(config, "engram_head_dim")
    if dim < SCALE_BLOCK or dim % SCALE_BLOCK:
        raise ValueError(f"engram_head_dim is {dim}, not a multiple of {SCALE_BLOCK}")
    sizes, heads = _number(config, "engram_max_ngram_size") - 1, _number(config, "engram_n_heads")
    vocabulary = _number(config, "engram_vocab_size")
    if sizes < 1 or heads < 1 or not 0 < vocabulary < 1 << 40:
        raise ValueError("engram_max_ngram_size, engram_n_heads or engram_vocab_size is too small")
    tables, seen = [], set[int]()
    for layer, count in zip(layers, rows, strict=True):
        primes = [prime for _ in range(sizes) for prime in _primes(vocabulary, heads, seen)]
        columns = (0, *accumulate(primes))
        if columns[-1] != count:
            wanted = f"its {len(primes)} hash columns have {columns[-1]}"
            raise ValueError(f"layer {layer}: engram_num_embeddings is {count}, but {wanted}")
        tables.append(Table(layer, count, dim, columns))
    return tuple(tables)


def _config(text: str) -> Mapping[str, Any]:
    """Return the text model's values; an outer one counts before one of `text_config`."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from error
    if not isinstance(values, dict):
        raise ValueError("not a JSON object")
    inner = values.get("text_config")
    return {**(inner if isinstance(inner, dict) else {}), **values}


def _number(config: Mapping[str, Any], name: str) -> int:
    value = config.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{name} is {value!r}, not a number of this")
    return value


def _numbers(config: Mapping[str, Any], name: str) -> list[int]:
    values = config.get(name)
    if not isinstance(values, list):
        raise ValueError(f"{name} is {values!r}, not a list")
    return [_number({name: value}, name) for value in values]


def _primes(vocabulary: int, count: int, seen: set[int]) -> Iterator[int]:
    """Yield the next `count` primes from the vocabulary's size on that no table has yet.

    One per head, and each n-gram size begins again at the vocabulary's size (srt/layers/engram.py,
    `EngramLayout.from_config`).
    """
    found, candidate = 0, vocabulary - 1
    while found < count:
        candidate += 1
        if candidate not in seen and _is_prime(candidate):
            seen.add(candidate)
            found += 1
            yield candidate


def _is_prime(number: int) -> bool:
    if number < 2 or any(number % base == 0 for base in _BASES):
        return number in _BASES
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    return all(_passes(pow(base, odd, number), twos, number) for base in _BASES)


def _passes(power: int, twos: int, number: int) -> bool:
    """Tell whether a base leaves it possible that `number` is prime."""
    if power in (1, number - 1):
        return True
    for _ in range(twos - 1):
        power = power * power % number
        if power == number - 1:
            return True
    return False
