"""Mistakes that a split could have: each is found by what the correct one is tested with."""

from typing import Any
from unittest import mock

import msgspec
import pytest
import torch

from tests.engine.lab import in_engine
from tests.engine.split_faults import RAGGED, faults
from tetraspark.engine import prefill_split
from tetraspark.engine.row_partition import Partition


def lengths_of_the_slice(correct: Any, data: Any, partition: Partition) -> Any:
    own, begin, lengths = correct(data, partition), 0, []
    for count in own.rows_per_request:
        lengths.append(int(own.compress_lens[begin : begin + count].max()) if count else 0)
        begin += count
    return msgspec.structs.replace(own, lens_per_request=lengths)


def no_zeros(correct: Any, data: Any, partition: Partition) -> Any:
    own = correct(data, partition)
    rows = [count for count in own.rows_per_request if count]
    return msgspec.structs.replace(own, rows_per_request=rows)


def starts_of_the_slice(correct: Any, data: Any, partition: Partition) -> Any:
    own = correct(data, partition)
    starts = own.request_starts
    return msgspec.structs.replace(own, request_starts=starts - starts[:1].sum())


def zero_padding(correct: Any, like: torch.Tensor, partition: Partition) -> torch.Tensor:
    return like.new_zeros((partition.extent, like.shape[1]))


def no_padding(correct: Any, like: torch.Tensor, partition: Partition) -> torch.Tensor:
    return like.new_full((partition.end - partition.begin, like.shape[1]), -1)


MISTAKES = {
    "own_rows": (lengths_of_the_slice, no_zeros, starts_of_the_slice),
    "_empty": (zero_padding, no_padding),
}
CASES = [(name, mistake.__name__) for name, found in MISTAKES.items() for mistake in found]


@pytest.mark.parametrize(("target", "mistake"), CASES)
@in_engine
def test_a_mistake_in_the_split_is_found(target: str, mistake: str) -> None:
    broken = next(one for one in MISTAKES[target] if one.__name__ == mistake)
    correct = getattr(prefill_split, target)
    with mock.patch.object(prefill_split, target, lambda *parts: broken(correct, *parts)):
        try:
            found, _ = faults(RAGGED, 3)
        except (AssertionError, RuntimeError) as error:
            found = [str(error)]
    assert found
