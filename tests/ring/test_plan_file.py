"""A plan as a file: the same again, with the same ID, or refused."""

import hashlib
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
CABLES = PLAN.as_dict()["cables"]


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
        ("", "not JSON: "),
        ("[]", "not a JSON object"),
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


def edited(**values: Any) -> str:
    """A plan changed by hand, with the ID that the content then has."""
    body = PLAN.as_dict() | values
    del body["id"]
    return json.dumps({"id": hashlib.sha256(canonical(body).encode()).hexdigest(), **body})


def with_relays(relays: int) -> str:
    nodes = json.loads(json.dumps(PLAN.as_dict()["nodes"]))
    nodes[0]["markers"][0]["marks"][0]["relays"] = relays
    return edited(nodes=nodes)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (edited(paths=[]), "paths: between 0 pairs of ranks, wanted 12"),
        (
            edited(cables=[CABLES[0] | {"upper": 10**30}, *CABLES[1:]]),
            "cable 0: from rank 0 to 1000000000000000000000000000000",
        ),
        (with_relays(-1), "marks -1 relays"),
        (edited(members=[], nodes=[]), "members: 0, wanted 3 to 8 nodes"),
        (edited(mtu=-5), "mtu: -5"),
        ("[" * 200_000, "not JSON: nested too deeply"),
        ('{"id": ' + "9" * 5000 + "}", "not JSON: a number of 5000 digits"),
    ],
)
def test_a_plan_that_does_not_hold_together_is_refused_whatever_its_id(
    text: str, says: str
) -> None:
    with pytest.raises(UsageError) as error:
        RingPlan.parse(text, "ring.json")
    assert says in str(error.value)
