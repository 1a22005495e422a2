"""Candidate blocks that a split source published: each rank holds the rows it scored.

Its consumers split the same rows in the same way, so blocks do not travel; they are gathered, as
int32, only for a reader of rows that another rank scored.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from tetraspark.engine.prefill_scope import Gatherer
from tetraspark.engine.row_partition import Partition


@dataclass(frozen=True)
class Origin:
    """How the rows of a tensor of block ids were split, and the group that holds the others."""

    partition: Partition
    group: Gatherer


_origins: WeakTensorKeyDictionary = WeakTensorKeyDictionary()


def keep(blocks: torch.Tensor, partition: Partition, group: Gatherer) -> None:
    """Remember that `blocks`, [own rows, width] int32, are this rank's share."""
    _origins[blocks] = Origin(partition, group)


def origin_of(blocks: torch.Tensor) -> Origin | None:
    """Return how these blocks were split; None for those of all rows."""
    found: Origin | None = _origins.get(blocks)
    return found


def gather_rows(blocks: torch.Tensor, origin: Origin, rows: Sequence[int]) -> torch.Tensor:
    """Return the blocks of `rows`, ascending, on every rank: [len(rows), width] int32.

    Every rank must ask for the same rows.
    """
    partition = origin.partition
    shares = [partition.of_rank(rank) for rank in range(partition.world)]
    counts = [sum(share.begin <= row < share.end for row in rows) for share in shares]
    extent = max(counts, default=0)
    own = [row - partition.begin for row in rows if partition.begin <= row < partition.end]
    shard = blocks.new_full((extent, blocks.shape[1]), -1)
    shard[: len(own)] = blocks[torch.tensor(own, dtype=torch.int64, device=blocks.device)]
    gathered = origin.group.all_gather(shard, dim=0) if extent else shard
    return torch.cat([gathered[r * extent : r * extent + n] for r, n in enumerate(counts)])


def all_rows(blocks: torch.Tensor) -> torch.Tensor:
    """Return the blocks of all rows, gathered where they were split."""
    origin = origin_of(blocks)
    if origin is None:
        return blocks
    return gather_rows(blocks, origin, range(origin.partition.rows))


def tail_rows(full: Sequence[int], tail: Sequence[int]) -> Iterator[int]:
    """Yield the rows of each request's last `tail` of its `full` rows, ascending."""
    for stop, count in zip(accumulate(full), tail, strict=True):
        yield from range(stop - count, stop)
