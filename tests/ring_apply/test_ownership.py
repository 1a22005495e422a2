"""Whose is it: what others put is never replaced and never removed, what was there stays."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.ring_apply.machines import Machines
from tests.ring_apply.one_node import OneNode
from tetraspark.ring.plan import RingPlan

FOREIGN = {
    "route": ("ip route add {to} dev {other} proto static", "route {to}"),
    "route of a dead journal": ("ip route add {to} dev {other} proto 116", "route {to}"),
    "neighbour": (
        "ip neigh add {to} lladdr 02:00:00:00:09:09 dev {dev} nud permanent",
        "neighbour {dev} {to}",
    ),
    "qdisc": ("tc qdisc add dev {in} ingress", "qdisc {in}"),
    "rule": (
        "tc qdisc add dev {in} clsact; $(echo '{add}' | sed 's/{card}/02:00:00:00:09:09/')",
        "rule {in} 11/1",
    ),
    "rule of another protocol": (
        "tc qdisc add dev {in} clsact; tc filter add dev {in} ingress protocol 0x0800 pref 11 "
        "handle 9 flower action drop",
        "rule {in} 11/1",
    ),
    "prefix": (
        "ip addr del {src}/24 dev {dev}; ip addr add {src}/16 dev {dev}",
        "address {dev} {src}",
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_object_is_refused_and_left(node: OneNode, name: str) -> None:
    script, key = FOREIGN[name]
    node.sh(script.format(**node.words()))
    before = node.state()
    refused = node.apply()
    assert key.format(**node.words()) in [one["where"] for one in refused["problems"]]
    assert node.ask("look")["journal"] is None
    assert node.state() == before


def test_weakness_2_and_4_what_was_there_as_planned_is_adopted_and_stays(node: OneNode) -> None:
    node.sh(
        "ip route add {to} dev {dev} src {src} scope link proto static; "
        "ip neigh add {to} lladdr {mac} dev {dev} nud permanent; tc qdisc add dev {in} clsact; "
        "ip addr add 10.77.0.1/24 dev {dev}; {add}".format(**node.words())
    )
    before = node.state()
    assert node.apply()["ok"] and node.states() == {}
    journal = node.ask("look")["journal"]
    adopted = ["route {to}", "neighbour {dev} {to}", "qdisc {in}", "rule {in} 11/1"]
    assert {one.format(**node.words()) for one in adopted} <= set(journal["adopted"])
    back = node.rollback()
    assert back["ok"] and not back["left"] and not back["differences"]
    assert node.state() == before


def test_weakness_4_clsact_with_somebody_elses_filter_stays(node: OneNode) -> None:
    assert node.apply()["ok"]
    node.sh(
        "tc filter add dev {in} ingress protocol 0x0806 pref 5 handle 5 flower action drop".format(
            **node.words()
        )
    )
    back = node.rollback()
    assert back["outcome"] == "rolled back"
    assert [text.split(":")[0].split()[0] for text in back["differences"]] == ["filter", "qdisc"]
    assert [one["pref"] for one in node.state()["filters"]] == [5]


def test_what_somebody_replaced_is_left_and_told(node: OneNode) -> None:
    assert node.apply()["ok"]
    words = node.words()
    node.sh("ip route del {to}; ip route add {to} dev {other} proto static".format(**words))
    back = node.rollback()
    assert [one.split(":")[0] for one in back["left"]] == [f"route {words['to']}"]
    assert any(one.startswith("route: new") for one in back["differences"])
    assert [one["dev"] for one in node.state()["routes"] if one["dst"] == words["to"]] == [
        words["other"]
    ]


def test_weakness_6_a_card_that_answers_for_another_is_refused(node: OneNode) -> None:
    """What the wire says comes before what the plan says: swapped cables look like this."""
    node.sh(
        "ip neigh add {to} lladdr 02:00:00:00:09:09 dev {dev} nud reachable".format(**node.words())
    )
    refused = node.apply()
    assert "another machine answers on this cable" in refused["problems"][0]["seen"]


def test_a_second_plan_is_refused(node: OneNode, plan: RingPlan) -> None:
    assert node.apply()["ok"]
    refused = node.ask("prepare", "u", plan="f" * 64)
    assert not refused["ok"] and plan.id[:12] in refused["problems"][0]["seen"]
    assert node.ask("confirm", plan="f" * 64, files=[])["problems"]
    assert node.states() == {}


def test_a_prepared_node_can_be_taken_over_or_released(node: OneNode) -> None:
    before = node.state()
    assert node.prepare()["ok"]
    assert node.ask("prepare", "u", plan="f" * 64)["ok"]
    node.ask("abandon", "t")
    assert node.ask("look")["journal"]["plan"] == "f" * 64
    node.ask("abandon", "u")
    assert node.ask("look")["journal"] is None
    assert node.state() == before


def test_a_journal_that_cannot_be_read_is_never_guessed(node: OneNode) -> None:
    assert node.apply()["ok"]
    node.sh("sed -i s/plan/plam/ /var/lib/tetraspark/ring/journal.json")
    for verb in ("look", "prepare"):
        assert "journal.json" in node.ask(verb)["problems"][0]["where"]
    assert not node.rollback()["ok"]


SETTINGS = settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@SETTINGS
@given(
    kept=st.lists(st.integers(0, 25), min_size=3, max_size=8, unique=True),
    there=st.lists(st.integers(0, 7), max_size=2, unique=True),
    cut=st.integers(0, 20),
    bent=st.sampled_from(
        [
            "true",
            "ip neigh flush dev {dev} nud all",
            "ip link set {other} mtu 9000",
            "{del} || true",
        ]
    ),
)
def test_property_after_a_rollback_the_node_is_as_before(
    running: Machines, plan: RingPlan, kept: list[int], there: list[int], cut: int, bent: str
) -> None:
    """Any part of a plan, some of it there already, cut off anywhere, bent: all as it was."""
    running.reset(plan)
    node = OneNode(running, plan)
    order = list(node.wanted.objects)
    objects: list[dict[str, Any]] = [order[number] for number in sorted(kept)]
    # A rule needs its place.
    if any(one["kind"] == "rule" for one in objects):
        objects += [one for one in order if one["kind"] == "qdisc" and one not in objects]
    for number in there:
        if number < len(objects):
            _put(node, objects[number])
    before = node.state()
    assert node.prepare(objects=objects)["ok"]
    request = node.wanted.request("commit", "t", objects=objects, seconds=600)
    running.ask(node.name, request, **({"cut": cut} if cut else {}))
    node.sh(bent.format(**node.words()) + " 2>/dev/null || true")
    back = node.rollback()
    assert back["outcome"] == "rolled back" and not back["left"], back
    assert back["differences"] == []
    assert node.state() == before


def _put(node: OneNode, thing: dict[str, Any]) -> None:
    """Put a route or a clsact there beforehand, as somebody else would."""
    if thing["kind"] == "route":
        node.sh("ip route add {destination} dev {dev} src {source} scope link".format(**thing))
    if thing["kind"] == "qdisc":
        node.sh("tc qdisc add dev {dev} clsact".format(**thing))
