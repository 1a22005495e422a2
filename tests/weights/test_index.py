"""Which shards an index names, also from its beginning alone."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetraspark.weights.index import Index, read_index


def index_of(shards: int, tensors: int) -> str:
    names = [f"model-{n % shards + 1:05d}-of-{shards:05d}.safetensors" for n in range(tensors)]
    weights = {f"layers.{n}.weight": name for n, name in enumerate(names)}
    return json.dumps({"metadata": {"total_size": 510_000_000_000}, "weight_map": weights})


def test_a_whole_index_names_its_shards_once() -> None:
    found = read_index(index_of(2, 9))
    assert found.shards == ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
    assert found.total_size == 510_000_000_000


@given(st.integers(1, 60), st.integers(100, 3000))
def test_the_beginning_of_a_long_index_names_the_same_shards(shards: int, length: int) -> None:
    text = index_of(shards, 5000)
    assert read_index(text[: max(length, 200)], cut=True) == read_index(text)


@given(st.text(max_size=60) | st.text(alphabet='"{}[]:, model-01of.safetensors', max_size=300))
def test_odd_text_is_refused_or_names_nothing(text: str) -> None:
    assert read_index(text, cut=True).shards is None or "-of-" in text
    with pytest.raises(ValueError):
        read_index(text)


@pytest.mark.parametrize(
    "weights", [{}, {"a": 1}, {"a": "../other.safetensors"}, {"a": "model.bin"}, None]
)
def test_an_index_that_leads_elsewhere_is_refused(weights: object) -> None:
    with pytest.raises(ValueError, match="weight_map"):
        read_index(json.dumps({"metadata": {}, "weight_map": weights}))


def test_shards_without_numbers_cannot_be_told_from_the_beginning() -> None:
    text = '{"weight_map": {"a": "one.safetensors", "b": "two.safetensors", "c": "thr'
    assert read_index(text, cut=True) == Index(None, None)
