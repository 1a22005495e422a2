"""The engine's tensor-parallel collectives on tetraspark's transport.

One group of ours stands beside the engine's TP group. Which of the two carries a tensor depends
on its size and dtype alone, so all ranks route alike.
"""

import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.distributed

from tetraspark.collectives.algorithm import Algorithm
from tetraspark.collectives.cuda_group import CudaGroup
from tetraspark.collectives.group import Group
from tetraspark.collectives.settings import Settings
from tetraspark.collectives.transport import Transport
from tetraspark.engine.communicator_env import settings_from, transport_from

LEFT = "left to the engine"


@dataclass
class Routed:
    """How many operations of one kind went one way, and the bytes of this rank's tensors."""

    operations: int = 0
    bytes: int = 0


class Communicator:
    """Carries the collectives of one engine group (`GroupCoordinator`), on its device."""

    def __init__(self, group: Any, settings: Settings, transport: Transport) -> None:
        """Vote, connect and prove with the other ranks of `group`.

        On CUDA the operations are kernels. Raises RefusedError on every rank when one cannot take
        part.
        """
        self._engine = group
        self.settings = settings
        self.route = transport.name
        self.routed: dict[str, Routed] = {}
        self.group = self._open(torch.device(group.device), transport)

    def _open(self, device: torch.device, transport: Transport) -> Group | CudaGroup:
        rank, world = self._engine.rank_in_group, self._engine.world_size
        if device.type == "cuda":
            return CudaGroup.open(rank, world, self._exchange, device, self.settings, transport)
        return Group.open(rank, world, self._exchange, self.settings, transport)

    def _exchange(self, data: bytes) -> Sequence[bytes]:
        found: list[Any] = [None] * self._engine.world_size
        torch.distributed.all_gather_object(found, data, group=self._engine.cpu_group)
        return found

    def carries(self, group: Any) -> bool:
        """Tell whether a collective of this engine group is ours to carry."""
        return group is self._engine

    def reduces(self, tensor: torch.Tensor) -> bool:
        """Tell whether an all-reduce of this tensor is carried; counts the answer.

        By size and dtype alone, whether it is of a decode or of a prefill. Not where the engine
        compiles: what is traced there cannot be launched from here.
        """
        if torch.compiler.is_compiling():
            return False
        nbytes = tensor.nbytes
        carried = self.group.fits(nbytes, tensor.dtype)
        way = self.algorithm(nbytes) if carried else LEFT
        return self._counted(f"all_reduce {way}", nbytes, carried)

    def algorithm(self, nbytes: int) -> Algorithm:
        """Return how an all-reduce of this size goes, if it is carried."""
        return self.settings.algorithm_for(nbytes)

    def gathers(self, tensor: torch.Tensor) -> bool:
        """Tell whether an all-gather of this shard is carried; counts the answer."""
        if torch.compiler.is_compiling():
            return False
        nbytes = tensor.nbytes
        carried = self.group.fits_gather(nbytes)
        return self._counted("all_gather" if carried else f"all_gather {LEFT}", nbytes, carried)

    def _counted(self, route: str, nbytes: int, carried: bool) -> bool:
        counts = self.routed.setdefault(route, Routed())
        counts.operations += 1
        counts.bytes += nbytes
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

    def look_for_cause(self, seconds: float) -> None:
        """Raise CollectiveError if the group is found to have failed within that time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.group.check(0.0)
            time.sleep(self.settings.notice_s)

    def state(self) -> dict[str, Any]:
        """Return the group's state and what was routed, JSON-able."""
        # A copy first: this is asked from another thread than the one that counts.
        routed = {route: asdict(counts) for route, counts in dict(self.routed).items()}
        return {"routed": routed, **self.group.state()}


def open_communicator(group: Any) -> Communicator | None:
    """Open the communicator that the plan asks for, or None when it asks for none."""
    settings = settings_from(os.environ)
    if settings is None:
        return None
    return Communicator(group, settings, transport_from(os.environ, group.rank_in_group))
