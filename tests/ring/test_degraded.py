"""Plans made before anything breaks: what each loss leaves."""

from fractions import Fraction

import pytest

from tests.ring.sparks import sparks
from tetraspark.ring.build import ring_plan
from tetraspark.ring.degraded import Degraded, degraded_plans
from tetraspark.ring.load import Share, loads
from tetraspark.ring.options import RingOptions
from tetraspark.ring.walk import walk_all

WHOLE = ring_plan(sparks())
PLANS = degraded_plans(sparks(), WHOLE, RingOptions())


def test_every_cable_and_every_function_has_a_plan() -> None:
    assert [one.lost for one in PLANS] == [
        *(f"cable {number}" for number in range(4)),
        *(f"function spark{rank}:en{half}s0f0np0" for rank in range(4) for half in ("p1", "P2p1")),
    ]
    for one in PLANS:
        assert one.plan is not None and not any(walk.fault for walk in walk_all(one.plan))


@pytest.mark.parametrize("number", range(4))
def test_a_lost_cable_leaves_a_line_whose_ends_meet_over_two_relays(number: int) -> None:
    plan = PLANS[number].plan
    assert plan is not None and plan.shape == "line" and len(plan.cables) == 3
    ends = {number, (number + 1) % 4}
    closing = [path for path in plan.paths if {path.source, path.target} == ends]
    assert len(closing) == 4 and {len(path.relays) for path in closing} == {2}
    tags = sorted({rule.tag for node in plan.nodes for rule in node.rules})
    assert tags == [0x88B5, 0x88B6]
    marked = {mark.relays for node in plan.nodes for one in node.markers for mark in one.marks}
    assert marked == {1, 2}


def share(one: Degraded) -> Share:
    assert one.share is not None
    return one.share


def test_what_is_left_of_the_bandwidth() -> None:
    half = Fraction(1, 2)
    for one in PLANS[:4]:
        assert (share(one).one_way, share(one).both_ways) == (Fraction(1), half)
    for one in PLANS[4:]:
        assert (share(one).one_way, share(one).both_ways) == (half, half)
    assert {share(one).exchange for one in PLANS[:4]} == {Fraction(3, 4)}


def test_the_load_of_a_ring_all_reduce_is_even() -> None:
    found = loads(WHOLE.paths, [(rank, (rank + 1) % 4) for rank in range(4)])
    assert set(found.values()) == {Fraction(1, 2)} and len(found) == 8


def test_a_line_of_eight_goes_past_the_tags_for_experiments() -> None:
    (last,) = (one for one in degraded_plans(sparks(8), ring_plan(sparks(8)), RingOptions())
               if one.lost == "cable 7")  # fmt: skip
    assert last.plan is not None
    assert max(rule.tag for node in last.plan.nodes for rule in node.rules) == 0x88BA
