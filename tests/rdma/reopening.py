"""A second group in the same process, after the first: as a server that reconnects."""

from pathlib import Path

import torch

from tests.collectives.oracle import raw, reduced, shard
from tests.collectives.ranks import COMMANDS, FolderExchange, MakeTransport
from tetraspark.collectives.group import Group
from tetraspark.collectives.settings import Settings


def reopen(group: Group, folder: Path, settings: Settings, make: MakeTransport) -> int:
    """Close, open anew, check a sum; return the GID index that the first device has now."""
    group.close()
    exchange = FolderExchange(folder, group.rank, group.world)
    again = Group.open(group.rank, group.world, exchange, settings, make(group.rank))
    total = again.all_reduce(shard(3, group.rank, (1024,)))
    wanted = reduced([shard(3, rank, (1024,)) for rank in range(group.world)])
    assert raw(total) == raw(wanted) and total.dtype == torch.bfloat16
    index = int(again.state()["details"]["devices"][0]["gid_index"])
    again.close()
    return index


COMMANDS["reopen"] = reopen
