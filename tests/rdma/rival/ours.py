"""One rank's end of our proxy, as the contest times it."""

import torch

from tests.collectives.ranks import FolderExchange
from tests.rdma.network import over, switch_wiring
from tetraspark.collectives.group import Group
from tetraspark.collectives.settings import Settings


class Ours:
    """The group over verbs."""

    name = "tetraspark"

    def __init__(
        self, rank: int, world: int, rails: int, exchange: FolderExchange, nbytes: int
    ) -> None:
        wiring = switch_wiring(world, rails)
        settings = Settings(
            max_reduce_bytes=nbytes, lanes=rails, routes=wiring.routes(), spins=0, yields=200
        )
        self._group = Group.open(rank, world, exchange, settings, over(wiring)(rank))

    def reduce(self, tensor: torch.Tensor, out: torch.Tensor) -> None:
        """Sum bf16 over the ranks."""
        self._group.all_reduce(tensor, out)

    def counted(self) -> tuple[int, int]:
        """Return calls of `ibv_post_send` for data, and completions asked for by them, so far."""
        lanes = self._group.state()["details"]["lanes"]
        # A payload and its flag are two writes of one post.
        return sum(lane["writes"] // 2 for lane in lanes), sum(lane["signalled"] for lane in lanes)

    def wake(self) -> None:
        """Its thread sleeps when idle: nothing to do."""

    rest = wake

    def close(self) -> None:
        """Release everything."""
        self._group.close()
