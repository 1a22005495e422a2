"""Opens groups of fake ranks."""

from dataclasses import dataclass, replace
from typing import Any

from tetraspark.collectives.fabric import Fabric, Faults
from tetraspark.collectives.fake import FakeTransport, run_together
from tetraspark.collectives.group import Group
from tetraspark.collectives.opening import Link, opening
from tetraspark.collectives.settings import Settings

SMALL = Settings(max_reduce_bytes=4096, max_gather_bytes=2048)


@dataclass
class Opened:
    """A fabric, the groups that opened on it, and what opening returned on each rank."""

    fabric: Fabric
    groups: dict[int, Group]
    results: dict[int, object]


def open_on(
    world: int,
    seed: int = 0,
    faults: Faults | None = None,
    fabric: Fabric | None = None,
    **settings: Any,
) -> Opened:
    """Open a group of fake ranks; `settings` change the small ones."""
    fabric = fabric or Fabric(world, seed, faults)
    told = replace(SMALL, **settings)
    steps = {rank: opening(rank, world, told, FakeTransport(fabric, rank)) for rank in range(world)}
    results = run_together(fabric, steps)
    groups = {rank: Group(link) for rank, link in results.items() if isinstance(link, Link)}
    return Opened(fabric, groups, results)
