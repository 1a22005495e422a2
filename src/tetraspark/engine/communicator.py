"""The engine's tensor-parallel collectives on tetraspark's transport.

One group of ours stands beside the engine's TP group. Which of the two carries a tensor depends
on its size and dtype alone, so all ranks route alike.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.distributed

from tetraspark.collectives.group import Group
from tetraspark.collectives.settings import Settings
from tetraspark.engine.collectives_env import LIMITS, TRANSPORT


def settings_from(env: Mapping[str, str]) -> Settings | None:
    """Return the group's settings, or None when the plan leaves collectives to the engine.

    Raises ValueError for a variable that is absent or no number: the plan sets all of them.
    """
    if TRANSPORT not in env:
        return None
    if env[TRANSPORT] != "shm":
        raise ValueError(f"{TRANSPORT}={env[TRANSPORT]}: wanted shm")
    absent = [name for name, _, _ in LIMITS if name not in env]
    if absent:
        raise ValueError(f"{', '.join(absent)}: not set, though {TRANSPORT} is")
    values: dict[str, Any] = {setting: int(env[name]) for name, _, setting in LIMITS}
    return Settings(**values)


class Communicator:
    """Carries the small collectives of one engine group (`GroupCoordinator`)."""

    def __init__(self, group: Any, settings: Settings) -> None:
        """Vote, connect and prove with the other ranks of `group`.

        Raises RefusedError on every rank when one cannot take part.
        """
        self._engine = group
        self.settings = settings
        self.routed: Counter[str] = Counter()
        self.group = Group.open(group.rank_in_group, group.world_size, self._exchange, settings)

    def _exchange(self, data: bytes) -> Sequence[bytes]:
        found: list[Any] = [None] * self._engine.world_size
        torch.distributed.all_gather_object(found, data, group=self._engine.cpu_group)
        return found

    def carries(self, group: Any) -> bool:
        """Tell whether a collective of this engine group is ours to carry."""
        return group is self._engine

    def reduces(self, tensor: torch.Tensor) -> bool:
        """Tell whether an all-reduce of this tensor is carried; counts the answer."""
        return self._counted("all_reduce", self.group.fits(tensor.nbytes, tensor.dtype))

    def gathers(self, tensor: torch.Tensor) -> bool:
        """Tell whether an all-gather of this shard is carried; counts the answer."""
        return self._counted("all_gather", self.group.fits_gather(tensor.nbytes))

    def _counted(self, operation: str, carried: bool) -> bool:
        self.routed[operation if carried else f"{operation} left to the engine"] += 1
        return carried

    def all_reduce(self, tensor: torch.Tensor) -> torch.Tensor:
        """Sum in place over the ranks, in rank order; returns the same tensor."""
        return self.group.all_reduce(tensor, out=tensor)

    def all_gather(self, tensor: torch.Tensor, dim: int) -> torch.Tensor:
        """Concatenate the ranks' shards along `dim`; any dimension."""
        dim %= tensor.dim()
        if dim in (0, tensor.dim() - 1):
            return self.group.all_gather(tensor, dim=0 if dim == 0 else -1)
        whole = self.group.all_gather(tensor.movedim(dim, 0).contiguous(), dim=0)
        return whole.movedim(0, dim)

    def all_gather_into(self, output: torch.Tensor, tensor: torch.Tensor) -> None:
        """Fill `output` with the ranks' tensors one after the other, in rank order."""
        output.view(-1).copy_(self.group.all_gather(tensor.reshape(-1), dim=0))

    def check(self, result: Any) -> None:
        """Check the group before a step's results are used; raises CollectiveError."""
        copied = getattr(result, "copy_done", None)
        self.group.check(self.settings.late_limit_s, None if copied is None else copied.query)

    def state(self) -> dict[str, Any]:
        """Return the group's state and what was routed, JSON-able."""
        return {"routed": dict(self.routed), **self.group.state()}


def open_communicator(group: Any) -> Communicator | None:
    """Open the communicator that the plan asks for, or None when it asks for none."""
    settings = settings_from(os.environ)
    return None if settings is None else Communicator(group, settings)
