"""Simulation: every frame of a plan followed, and what the cables and functions carry of it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from tetraspark.ring.load import Edge, forwarded, loads
from tetraspark.ring.plan import RingPlan
from tetraspark.ring.walk import Walk, walk_all


@dataclass(frozen=True)
class Simulation:
    """The walks of a plan's paths, in order of source, target and lane.

    `forwarded` counts relayed paths by cable and half. `ring` and `exchange` are loads by edge
    (cable, half, sending rank) of a ring all-reduce in one sense and of every rank sending the
    same to every other, a unit being what one rank sends another. Computed, not measured.
    """

    plan: RingPlan
    walks: tuple[Walk, ...]
    forwarded: Mapping[tuple[int, int], int]
    ring: Mapping[Edge, Fraction]
    exchange: Mapping[Edge, Fraction]

    @property
    def lost(self) -> tuple[Walk, ...]:
        """The walks that do not end where their path does."""
        return tuple(one for one in self.walks if one.fault)

    def as_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        return {
            "plan": self.plan.id,
            "lost": len(self.lost),
            "walks": [_walk(one) for one in self.walks],
            "load": [
                {
                    "cable": cable,
                    "half": half,
                    "from": rank,
                    "relayed_paths": self.forwarded.get((cable, half), 0),
                    "ring_all_reduce": float(self.ring.get((cable, half, rank), 0)),
                    "exchange": float(units),
                }
                for (cable, half, rank), units in sorted(self.exchange.items())
            ],
        }


def simulate(plan: RingPlan) -> Simulation:
    """Follow every path of a plan and count."""
    world = len(plan.members)
    forth = [(rank, (rank + 1) % world) for rank in range(world)]
    everyone = [(one, two) for one in range(world) for two in range(world) if one != two]
    return Simulation(
        plan=plan,
        walks=walk_all(plan),
        forwarded=forwarded(plan),
        ring=loads(plan.paths, forth),
        exchange=loads(plan.paths, everyone),
    )


def _walk(one: Walk) -> dict[str, Any]:
    path = one.path
    return {
        "source": path.source,
        "target": path.target,
        "lane": path.lane,
        "half": path.half,
        "ranks": path.ranks,
        "hops": one.hops,
        "fault": one.fault,
        "steps": [asdict(step) for step in one.steps],
    }
