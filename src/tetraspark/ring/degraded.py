"""Degraded plans, made before anything breaks: one for each cable and each function lost."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from tetraspark.errors import UsageError
from tetraspark.fabric.function import NodeFabric
from tetraspark.ring.build import ring_plan
from tetraspark.ring.load import Share, share
from tetraspark.ring.options import LostFunction, RingOptions
from tetraspark.ring.plan import RingPlan


@dataclass(frozen=True)
class Degraded:
    """A loss, the plan around it, and what is left; `refused` says why there is none."""

    lost: str
    plan: RingPlan | None
    share: Share | None
    refused: str = ""

    def as_dict(self) -> dict[str, str | float | None]:
        """Return JSON-able values; the plan itself by its ID."""
        shares = {} if self.share is None else asdict(self.share)
        return {
            "lost": self.lost,
            "plan": None if self.plan is None else self.plan.id,
            "refused": self.refused,
            **{f"share_{name}": float(value) for name, value in shares.items()},
        }


def losses(whole: RingPlan) -> Iterator[RingOptions]:
    """Yield each single loss of a whole ring: the cables, then the functions.

    Losing one end of a half of a cable is losing both, so only lower ends are named.
    """
    for cable in whole.cables:
        yield RingOptions(lost_cable=cable.number)
    for cable in whole.cables:
        member = whole.members[cable.lower]
        for half in sorted(cable.halves):
            lost = LostFunction(member.node, member.at(cable.number, half).netdev)
            yield RingOptions(lost_function=lost)


def degraded_plans(
    fabrics: Sequence[NodeFabric], whole: RingPlan, options: RingOptions
) -> tuple[Degraded, ...]:
    """Plan around every single loss of a whole ring."""
    found = []
    for loss in losses(whole):
        chosen = replace(options, lost_cable=loss.lost_cable, lost_function=loss.lost_function)
        try:
            plan = ring_plan(fabrics, chosen)
        except UsageError as error:
            found.append(Degraded(chosen.lost, None, None, str(error)))
        else:
            found.append(Degraded(chosen.lost, plan, share(whole, plan)))
    return tuple(found)
