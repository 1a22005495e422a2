"""Row ranges are the engine's own: its functions are taken out of its source and run here."""

import ast
import json
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, Optional

import msgspec
import pytest

from tetraspark.engine.tree import open_tree
from tetraspark.engram.layout import Split, read_tables, shard_range

FILE = "srt/layers/engram.py"
NAMES = {
    "_MILLER_RABIN_WITNESSES", "_is_prime", "_find_next_prime", "EngramLayout", "shard_range",
}  # fmt: skip

# DeepSeek-V4.1-Flash's own.
FLASH = {
    "engram_layer_ids": [1, 14],
    "engram_num_embeddings": [384006168, 384016682],
    "engram_max_ngram_size": 4,
    "engram_vocab_size": 16000000,
    "engram_n_heads": 8,
    "engram_head_dim": 256,
}


@pytest.fixture(scope="module")
def engine() -> SimpleNamespace:
    """The engine's layout and split, without importing the engine (it wants a GPU's packages)."""
    tree = open_tree(None)
    text = tree.read(FILE)
    assert text is not None
    names: dict[str, Any] = {"msgspec": msgspec, "Optional": Optional}
    kept = [node for node in ast.parse(text).body if _name(node) in NAMES]
    assert {_name(node) for node in kept} == NAMES
    future = ast.parse("from __future__ import annotations").body
    code = compile(ast.Module([*future, *kept], []), FILE, "exec")
    names["__name__"] = "engram"
    exec(code, names)
    return SimpleNamespace(**{name: names[name] for name in NAMES})


def _name(node: ast.stmt) -> str:
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return getattr(node, "name", "")


def config(**changes: Any) -> dict[str, Any]:
    """A small one whose tables have uneven rows."""
    return FLASH | {"engram_vocab_size": 100, "engram_num_embeddings": [0, 0]} | changes


def fitted(engine: SimpleNamespace, values: dict[str, Any]) -> dict[str, Any]:
    layout = engine.EngramLayout.from_config(SimpleNamespace(**values))
    rows = [layout.column_bounds(index)[-1] for index in range(len(layout.layer_ids))]
    return values | {"engram_num_embeddings": rows}


@pytest.mark.parametrize("tp", [1, 2, 3, 4, 5, 7, 8, 24, 25])
@pytest.mark.parametrize("heads", [1, 3, 8])
@pytest.mark.parametrize("vocabulary", [1, 2, 100, 16_000_000])
def test_the_ranges_are_the_engines(
    engine: SimpleNamespace, tp: int, heads: int, vocabulary: int
) -> None:
    values = config(engram_vocab_size=vocabulary, engram_n_heads=heads)
    values = fitted(engine, values)
    layout = engine.EngramLayout.from_config(SimpleNamespace(**values))
    for index, table in enumerate(read_tables(json.dumps(values))):
        columns = layout.column_bounds(index)
        assert table.columns == columns
        for rank in range(tp):
            theirs = engine.shard_range(table.rows, columns, rank, tp)
            assert shard_range(table.rows, table.columns, "columns", rank, tp) == theirs


def test_the_real_tables_have_the_rows_of_their_primes() -> None:
    one, other = read_tables(json.dumps(FLASH))
    assert (one.layer, one.rows, one.row_bytes, len(one.columns)) == (1, 384006168, 264, 25)
    assert (other.layer, other.rows) == (14, 384016682)


@pytest.mark.parametrize("split", ["columns", "rows"])
@pytest.mark.parametrize("tp", [1, 2, 3, 4, 8])
def test_ranks_partition_a_table(split: Split, tp: int) -> None:
    table = read_tables(json.dumps(FLASH))[1]
    ranges = [shard_range(table.rows, table.columns, split, rank, tp) for rank in range(tp)]
    assert ranges[0][0] == 0 and ranges[-1][1] == table.rows
    assert all(before[1] == after[0] for before, after in pairwise(ranges))
    assert all(first < end for first, end in ranges)


def test_the_two_splits_differ_so_a_shard_of_one_is_no_shard_of_the_other() -> None:
    table = read_tables(json.dumps(FLASH))[0]
    split = [shard_range(table.rows, table.columns, one, 1, 4) for one in ("columns", "rows")]
    assert split[0] != split[1]


def test_values_of_a_text_config_count_and_outer_ones_first() -> None:
    inner = FLASH | {"engram_head_dim": 512}
    assert read_tables(json.dumps({"text_config": inner}))[0].dim == 512
    assert read_tables(json.dumps({"text_config": inner, "engram_head_dim": 64}))[0].dim == 64


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"engram_layer_ids": []}, "no Engram tables"),
        ({"engram_layer_ids": [1]}, "1 engram_layer_ids and 2"),
        ({"engram_layer_ids": ["1", 2]}, "engram_layer_ids is '1'"),
        ({"engram_head_dim": 250}, "not a multiple of 32"),
        ({"engram_n_heads": None}, "engram_n_heads is None"),
        ({"engram_max_ngram_size": 1}, "too small"),
        ({"engram_vocab_size": 0}, "too small"),
        ({"engram_num_embeddings": [384006168, 1]}, "layer 14: engram_num_embeddings is 1"),
    ],
)
def test_a_config_that_contradicts_itself_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_tables(json.dumps(FLASH | changes))


@pytest.mark.parametrize("text", ["", "[]", "{", "\x00"])
def test_a_text_that_is_no_config_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="JSON"):
        read_tables(text)


def test_there_is_no_rank_four_of_four() -> None:
    with pytest.raises(ValueError, match="rank 4 of 4"):
        shard_range(100, (0, 100), "rows", 4, 4)
