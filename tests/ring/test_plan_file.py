"""A plan as a file: the same again, with the same ID, or refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.ring.sparks import change, sparks
from tetraspark.errors import UsageError
from tetraspark.ring.build import ring_plan
from tetraspark.ring.options import RingOptions
from tetraspark.ring.plan import RingPlan, canonical, read_plan

PLAN = ring_plan(sparks())


def test_a_plan_comes_back_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "ring.json"
    file.write_text(PLAN.text())
    assert read_plan(file) == PLAN and read_plan(file).id == PLAN.id
    assert len(PLAN.id) == 64


def test_the_id_depends_on_what_is_planned_and_on_nothing_else() -> None:
    counted = [change(one, "enp1s0f0np0", counters={"port_xmit_data": 9}) for one in sparks()]
    assert ring_plan(counted).id == PLAN.id
    other = change(sparks()[0], "enp1s0f0np0", mac="02:00:00:00:00:77")
    assert ring_plan([other, *sparks()[1:]]).id != PLAN.id
    assert ring_plan(sparks(), RingOptions(lost_cable=0)).id != PLAN.id


def changed(**values: Any) -> str:
    return json.dumps(PLAN.as_dict() | values)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no JSON of a plan"),
        ("[]", "no JSON of a plan"),
        ("{}", "no key 'id'"),
        (changed(version=2), "a plan of version 2"),
        (changed(mtu=1500), f"ID {PLAN.id}, and content whose ID is"),
        (changed(id="0" * 64), "wanted: a plan as it was written"),
        (changed(members="x"), "members: "),
        (changed(shape="star"), "shape: "),
    ],
)
def test_what_is_no_plan(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=r"^ring\.json: ") as error:
        RingPlan.parse(text, "ring.json")
    assert says in str(error.value) and error.value.problems[0].fix


def test_canonical_json_has_one_spelling() -> None:
    assert canonical({"b": [1, "é"], "a": None}) == '{"a":null,"b":[1,"\\u00e9"]}'


def test_a_node_that_is_none() -> None:
    assert PLAN.of("spark2") is PLAN.nodes[2]
    with pytest.raises(LookupError, match="spark9"):
        PLAN.of("spark9")
