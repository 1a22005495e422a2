"""A stream of all-reduces whose every result is told, for networks that break under it."""

import hashlib

from tests.collectives.oracle import raw, reduced, shard
from tests.collectives.ranks import COMMANDS
from tests.rdma.injection import inject
from tetraspark.collectives.group import Group

SIZES = (8, 4096, 24, 1000, 8000, 16, 2048)
"""Elements (bf16) of successive all-reduces: cut differently each, from 16 bytes to 16,000."""


def stream(group: Group, first: int, count: int, event: str = "", device: int = 0) -> list[str]:
    """All-reduce `count` times from seed `first` on; return each result's sha256.

    `event`: what this rank's device reports after a third of them. No connection of it can be
    made anew after that, since its event descriptor is another's now.
    """
    told = []
    for seed in range(first, first + count):
        if event and seed == first + count // 3:
            inject(group, event, device, 0 if group.rank else 1, device)
        told.append(digest(raw(group.all_reduce(shard(seed, group.rank, (size_of(seed),))))))
    return told


def oracle(world: int, first: int, count: int) -> list[str]:
    """Return what every rank must have computed."""
    return [
        digest(raw(reduced([shard(seed, rank, (size_of(seed),)) for rank in range(world)])))
        for seed in range(first, first + count)
    ]


def size_of(seed: int) -> int:
    """Return the elements of one all-reduce."""
    return SIZES[seed % len(SIZES)]


def digest(data: bytes) -> str:
    """Return a sha256, hex."""
    return hashlib.sha256(data).hexdigest()


COMMANDS["stream"] = stream
