"""Objects by content: every way to bend one is seen, named, and mended or refused."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.ring_apply.machines import Machines
from tests.ring_apply.one_node import OneNode
from tetraspark.ring.plan import RingPlan


@dataclass(frozen=True)
class Mutation:
    """A script that bends the node, the object and state that shows, and whether it is mended."""

    script: str
    key: str
    state: str
    mended: bool = True
    heal: str = "true"


MUTATIONS = {
    "wrong MAC of a neighbour": Mutation(
        "ip neigh replace {to} lladdr 02:00:00:00:09:09 dev {dev} nud permanent protocol 116",
        "neighbour {dev} {to}",
        "different",
    ),
    "stale neighbour": Mutation(
        "ip neigh replace {to} lladdr 02:00:00:00:09:09 dev {dev} nud stale",
        "neighbour {dev} {to}",
        "different",
    ),
    "no neighbour": Mutation("ip neigh del {to} dev {dev}", "neighbour {dev} {to}", "missing"),
    "wrong gateway": Mutation(
        "ip route del {to}; ip route add {to} via {via} dev {dev} src {src} proto 116",
        "route {to}",
        "different",
    ),
    "wrong device": Mutation(
        "ip route del {to}; ip route add {to} dev {other} src {src} proto 116",
        "route {to}",
        "different",
    ),
    "a second route": Mutation(
        "ip route add {to} dev {other} src {src} proto static metric 5",
        "route {to}",
        "conflict",
        mended=False,
        heal="ip route del {to} metric 5",
    ),
    "somebody's route in its place": Mutation(
        "ip route del {to}; ip route add {to} dev {other} proto static",
        "route {to}",
        "conflict",
        mended=False,
        heal="ip route del {to}; ip route add {to} dev {dev} src {src} proto 116 scope link",
    ),
    "no rule": Mutation("{del}", "rule {in} 11/1", "missing"),
    "a rule that sends elsewhere": Mutation(
        "{del}; $(echo '{add}' | sed 's/redirect dev .*/redirect dev {other}/')",
        "rule {in} 11/1",
        "different",
    ),
    "a rule to another card": Mutation(
        "{del}; $(echo '{add}' | sed 's/{card}/02:00:00:00:09:09/')", "rule {in} 11/1", "different"
    ),
    "a rule in software too": Mutation(
        "{del}; $(echo '{add}' | sed 's/skip_sw//')", "rule {in} 11/1", "different"
    ),
    "a rule not in hardware": Mutation(
        "{del}; printf not_in_hw >/run/tc.fault; {add}; rm /run/tc.fault",
        "rule {in} 11/1",
        "not-in-hardware",
    ),
    "somebody's rule for the same frames": Mutation(
        "$(echo '{add}' | sed 's/handle 1/handle 7/')",
        "rule {in} 11/1",
        "conflict",
        mended=False,
        heal="$(echo '{del}' | sed 's/handle 1/handle 7/')",
    ),
    "offload off": Mutation("ethtool -K {in} hw-tc-offload off", "offload {in}", "different"),
    "no offload at all": Mutation(
        "ethtool -K {in} hw-tc-offload 'off [fixed]'",
        "offload {in}",
        "conflict",
        mended=False,
        heal="ethtool -K {in} hw-tc-offload on",
    ),
    "other steering": Mutation(
        "echo dmfs >/run/devlink.0000:01:00.0.flow_steering_mode",
        "steering 0000:01:00.0",
        "different",
    ),
    "MTU of 1500": Mutation("ip link set {other} mtu 1500", "link {other}", "different"),
    "another card": Mutation(
        "ip link set {other} address 02:00:00:00:09:09",
        "link {other}",
        "conflict",
        mended=False,
        heal="ip link set {other} address {othermac}",
    ),
    "no link": Mutation(
        "ip link set enP2p1s0f0np0 down",
        "link enP2p1s0f0np0",
        "no-link",
        mended=False,
        heal="ip link set enP2p1s0f0np0 up",
    ),
    "no marker": Mutation("kill -9 $(pgrep -x marker | head -n 1)", "marker rocep1s0f0", "missing"),
}


@pytest.fixture(scope="module")
def applied(running: Machines, plan: RingPlan) -> Iterator[OneNode]:
    """A node with its part of the plan, healed by each test."""
    running.reset(plan)
    node = OneNode(running, plan)
    assert node.apply()["ok"]
    yield node
    assert node.states() == {}
    back = node.rollback()
    assert back["ok"] and not back["left"], back


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_is_seen_and_mended_or_refused(applied: OneNode, name: str) -> None:
    one, words = MUTATIONS[name], applied.words()
    applied.sh(one.script.format(**words))
    key = one.key.format(**words)
    assert applied.states()[key] == one.state, applied.details()
    if one.mended:
        # A commit ends with a look at everything, and fails unless all is present.
        assert applied.apply()["ok"]
    else:
        refused = applied.prepare()
        assert [problem["where"] for problem in refused["problems"]][:1] == [key]
        assert applied.states()[key] == one.state
        applied.sh(one.heal.format(**words))
    if name == "no link":
        # What hung on the device went with it; putting it back is an ordinary apply.
        assert applied.apply()["ok"]
    if not one.mended:
        assert applied.states() == {}


def test_an_apply_again_changes_nothing(applied: OneNode) -> None:
    before = applied.state()
    prepared = applied.prepare()
    assert prepared["ok"] and prepared["steps"] == [] and prepared["phase"] == "applied"
    assert applied.ask("commit", seconds=600)["done"] == 0
    assert applied.state() == before


def test_weakness_8_a_second_marker_or_another_binary(applied: OneNode) -> None:
    """A marker of somebody's, one of ours twice, and one whose file is not what runs."""
    applied.sh(
        "cp /var/lib/tetraspark/ring/marker/*/marker /run/relay_marker; "
        "timeout 2 /run/relay_marker --device rocep1s0f0 --mark 10.9.9.9=0x88b5 2>/run/said || true"
    )
    # The real program does not start a second time; whatever else has the name would.
    assert "another marker has rocep1s0f0" in applied.sh("cat /run/said")
    applied.sh("cp /bin/sleep /run/relay_marker; cp /bin/sh /run/marker2")
    applied.sh(
        "setsid /run/marker2 -c 'sleep 60; true' marker --device rocep1s0f0 >/dev/null 2>&1 & "
        "echo $! >/run/second; sleep 0.2"
    )
    assert applied.states() == {"marker rocep1s0f0": "conflict"}
    assert "marks it" in applied.details()
    applied.sh("kill -9 $(cat /run/second)")
    assert applied.states() == {}
    applied.sh(
        "cd /var/lib/tetraspark/ring/marker/*/ && cp marker m2 && echo x >>m2 && mv m2 marker"
    )
    both = ("marker rocep1s0f0", "marker roceP2p1s0f1")
    assert applied.states() == dict.fromkeys(both, "different")
    assert "another binary" in applied.details()
    assert applied.apply()["ok"]


def test_weakness_1_not_in_hw_is_not_in_hw(applied: OneNode) -> None:
    """`not_in_hw` holds `in_hw` as a part of its name; L42 is its text."""
    words = applied.words()
    applied.sh("{del}; printf not_in_hw >/run/tc.fault; {add}".format(**words))
    shown = applied.sh("tc -j filter show dev {in} ingress".format(**words))
    assert "not_in_hw" in shown and '"in_hw"' not in shown
    assert applied.states() == {f"rule {words['in']} 11/1": "not-in-hardware"}
    refused = applied.apply()
    assert not refused["ok"] and refused["problems"][0]["seen"].startswith("not-in-hardware")
    applied.sh("rm /run/tc.fault")
    assert applied.apply()["ok"] and applied.states() == {}
