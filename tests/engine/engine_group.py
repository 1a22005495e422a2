"""What the communicator uses of the engine's `GroupCoordinator`."""

from dataclasses import dataclass
from typing import Any

import torch.distributed


@dataclass(frozen=True)
class EngineGroup:
    """The ranks of one group, and the torch group through which they meet."""

    rank_in_group: int
    world_size: int
    cpu_group: Any
    device: str = "cpu"

    @classmethod
    def meet(cls, rank: int, world: int, folder: str, device: str = "cpu") -> "EngineGroup":
        """Meet the other ranks, processes of this host, through a file."""
        meeting = f"file://{folder}/meeting"
        torch.distributed.init_process_group(
            "gloo", init_method=meeting, rank=rank, world_size=world
        )
        return cls(rank, world, torch.distributed.group.WORLD, device)
