"""Where ranks meet, how long they wait, and how one of them is started."""

from collections.abc import Callable
from dataclasses import dataclass

from tetraspark.errors import Problem


@dataclass(frozen=True)
class Place:
    """`node` names this rank's node; `start` returns the command that starts a rank."""

    world: int
    address: tuple[str, int]
    limit_s: float
    node: str
    start: Callable[[int], str]

    @property
    def where(self) -> str:
        """The address as it is typed."""
        host, port = self.address
        return f"{host}:{port}"

    def problem(self, rank: int, seen: str, wanted: str, fix: str) -> Problem:
        """Return what a rank of this node has seen."""
        return Problem(f"node {self.node}, rank {rank}", seen, wanted, fix)
