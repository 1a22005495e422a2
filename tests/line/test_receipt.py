import dataclasses
import json

import pytest

from tetraspark.line.engine_log import Line, parse
from tetraspark.line.plan import Plan
from tetraspark.line.receipt import missing, wrong


def receipt(rank: int, kind: str, **fields: object) -> Line:
    body = {"rank": rank, "world": 4, "engine": "0.5.23"} | fields
    (line,) = parse(rank, [json.dumps({"tetraspark": kind, **body})])
    return line


def test_every_rank_must_show_every_receipt(plan: Plan) -> None:
    lines = [receipt(rank, kind) for rank in range(4) for kind in ("engine", "tp_all_reduce")]
    assert missing(lines, plan) == []
    assert missing(lines[:-1], plan) == [(3, "tp_all_reduce")]
    assert len(missing([], plan)) == 8


def test_one_rank_has_no_all_reduce_to_prove(plan: Plan) -> None:
    alone = dataclasses.replace(plan, ranks=plan.ranks[:1])
    assert missing([], alone) == [(0, "engine")]


def test_receipts_as_planned_are_not_wrong(plan: Plan) -> None:
    assert wrong([receipt(1, "engine")], plan) == []


@pytest.mark.parametrize(
    ("fields", "seen"),
    [({"rank": 3}, "rank 3"), ({"world": 2}, "world 2"), ({"engine": "0.5.22"}, "'0.5.22'")],
)
def test_a_receipt_that_contradicts_the_plan_names_rank_and_node(
    plan: Plan, fields: dict[str, object], seen: str
) -> None:
    line = receipt(1, "engine")
    assert line.receipt is not None
    line.receipt.update(fields)
    (problem,) = wrong([line], plan)
    assert problem.where == "rank 1 (node1)"
    assert seen in problem.seen
