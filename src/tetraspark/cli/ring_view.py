"""Ring plans and simulations as people read them."""

from collections.abc import Sequence

from rich.text import Text

from tetraspark.cli.fabric_table import unbroken
from tetraspark.cli.output import out, shown
from tetraspark.ring.degraded import Degraded
from tetraspark.ring.path import Path
from tetraspark.ring.plan import RingPlan
from tetraspark.ring.simulate import Simulation


def print_plan(plan: RingPlan) -> None:
    """Print the ring, its cables, the paths through relays, and what each node gets."""
    lost = f", without {plan.lost}" if plan.lost else ""
    out.print(f"[bold]{plan.shape}[/] of {len(plan.members)} nodes{lost}, MTU {plan.mtu}")
    out.print(f"  {shown(_picture(plan))}", markup=False)
    _table(("cable", "from", "to", "networks"), _cables(plan))
    relayed = [path for path in plan.paths if path.relays]
    out.print(f"\n{len(plan.paths)} paths, {len(relayed)} of them relayed")
    if relayed:
        columns = ("path", "leaves by", "address", "gateway", "target", "relays, in > out")
        _table(columns, [_relayed(plan, path) for path in relayed])
    columns = ("node", "routes", "neighbours", "rules", "markers", "functions to set")
    out.print()
    _table(columns, _objects(plan))
    out.print(
        f"\nat most {plan.caps.now} bytes an operation through a relay now, "
        f"{plan.caps.after} once the requirements are in effect"
    )
    out.print(f"plan [bold]{plan.id}[/]")


def print_degraded(plans: Sequence[Degraded]) -> None:
    """Print what each single loss would leave."""
    if not plans:
        return
    out.print("\nif one is lost: share of the ring's bandwidth left, computed and not measured")
    rows: list[tuple[str, ...]] = []
    for one in plans:
        if one.share is None or one.plan is None:
            rows.append((one.lost, one.refused, "", "", ""))
            continue
        shares = (one.share.one_way, one.share.both_ways, one.share.exchange)
        rows.append((one.lost, *(f"{float(part):.2f}" for part in shares), one.plan.id[:12]))
    columns = ("lost", "all-reduce one way", "both ways", "every pair", "plan")
    _table(columns, rows)


def print_simulation(found: Simulation) -> None:
    """Print every walk and the load of every edge."""
    plan = found.plan
    rows = [
        (
            _ranks(plan, one.path),
            str(one.path.half),
            str(one.hops),
            one.fault or f"delivered to {one.path.target_address}",
        )
        for one in found.walks
    ]
    _table(("path", "half", "cables", "end"), rows)
    out.print("\nload, computed: a unit is what one rank sends another")
    _table(
        ("cable", "half", "from", "relayed paths", "ring all-reduce", "every pair"),
        [
            (
                str(cable),
                str(half),
                plan.members[rank].node,
                str(found.forwarded.get((cable, half), 0)),
                f"{float(found.ring.get((cable, half, rank), 0)):.2f}",
                f"{float(units):.2f}",
            )
            for (cable, half, rank), units in sorted(found.exchange.items())
        ],
    )
    delivered = len(found.walks) - len(found.lost)
    out.print(f"\n{delivered} of {len(found.walks)} paths delivered; plan {plan.id}")


def _picture(plan: RingPlan) -> str:
    """Return the cables in one line, with the cages they are in."""
    by_number = {cable.number: cable for cable in plan.cables}
    parts = []
    for member in plan.members:
        parts.append(member.node)
        cable = by_number.get(member.rank)
        parts.append(f"[{cable.lower_cage}--{cable.upper_cage}]" if cable else "   ")
    if len(plan.members) - 1 in by_number:
        parts.append(f"({plan.members[0].node})")
    return " ".join(parts).rstrip()


def _cables(plan: RingPlan) -> list[tuple[str, ...]]:
    return [
        (
            str(one.number),
            f"{plan.members[one.lower].node} port {one.lower_cage}",
            f"{plan.members[one.upper].node} port {one.upper_cage}",
            ", ".join(str(net) if net else "lost" for net in one.networks),
        )
        for one in plan.cables
    ]


def _relayed(plan: RingPlan, path: Path) -> tuple[str, ...]:
    relays = "; ".join(f"{one.netdev_in} > {one.netdev_out}" for one in path.relays)
    ends = (str(path.address), str(path.gateway), str(path.target_address))
    return (_ranks(plan, path), path.netdev, *ends, relays)


def _objects(plan: RingPlan) -> list[tuple[str, ...]]:
    return [
        (
            one.node,
            *(str(len(kind)) for kind in (one.routes, one.neighbours, one.rules, one.markers)),
            str(len(one.requirements)),
        )
        for one in plan.nodes
    ]


def _ranks(plan: RingPlan, path: Path) -> str:
    return " > ".join(plan.members[rank].node for rank in path.ranks)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = unbroken(*columns)
    for row in rows:
        table.add_row(*(Text(shown(cell)) for cell in row))
    out.print(table)
