"""The receipts a line must show before it is ready, and what is missing or wrong. Pure."""

from collections.abc import Iterable

from tetraspark.errors import Problem
from tetraspark.line.engine_log import Line
from tetraspark.line.guard_settings import planned_guards
from tetraspark.line.plan import Plan

REQUIRED = ("engine", "tp_all_reduce")


def missing(lines: Iterable[Line], plan: Plan) -> list[tuple[int, str]]:
    """Return (rank, kind) of each required receipt that has not been printed yet.

    A line of one rank has no all-reduce to prove, one without [guards] no limits.
    """
    alone, guarded = len(plan.ranks) == 1, planned_guards(plan)
    required = [*(REQUIRED[:1] if alone else REQUIRED), *(("guards",) if guarded else ())]
    shown = {(line.rank, line.receipt["tetraspark"]) for line in lines if line.receipt}
    return [
        (command.rank, kind)
        for command in plan.ranks
        for kind in required
        if (command.rank, kind) not in shown
    ]


def wrong(lines: Iterable[Line], plan: Plan) -> list[Problem]:
    """Return a problem for each receipt that contradicts the plan."""
    problems = []
    for line in lines:
        if line.receipt is None:
            continue
        wanted = {
            "rank": line.rank,
            "world": len(plan.ranks),
            "engine": plan.engine,
            "transport": plan.transport,
            "route": "engine" if plan.transport == "off" else plan.transport,
            "settings": planned_guards(plan),
        }
        for name, value in wanted.items():
            if name in line.receipt and line.receipt[name] != value:
                problems.append(
                    Problem(
                        where=f"rank {line.rank} ({plan.ranks[line.rank].node})",
                        seen=f"{line.receipt['tetraspark']} receipt with {name} "
                        f"{line.receipt[name]!r}",
                        wanted=f"{name} {value!r}, as planned",
                        fix="the node runs another engine or rank than planned; "
                        "`tetraspark plan --explain` shows both",
                    )
                )
    return problems
