"""When a node is not touched: the way back, engines, lines; and the queues, a step of their own."""

import time

import pytest

from tests.ring_apply.one_node import OneNode

BUSY = {
    "RDMA": (
        "setsid tail -f /dev/null </dev/infiniband/uverbs0 >/dev/null 2>&1 & sleep 0.1",
        "in use by pid",
    ),
    "docker": ("""echo '{{"Names":"tetraspark-rank1"}}' >/run/docker""", "tetraspark-rank1"),
    "ssh": ("ip addr add 192.168.1.12/32 dev {dev}", "ssh came in on"),
    "ssh ": ("ip route add 192.168.1.100/32 dev {dev}", "answers to 192.168.1.100 leave by"),
}


@pytest.mark.parametrize("name", BUSY)
def test_a_busy_node_is_not_touched(node: OneNode, name: str) -> None:
    script, said = BUSY[name]
    node.sh(script.format(**node.words()))
    before = node.state()
    refused = node.apply()
    (problem,) = refused["problems"]
    assert problem["where"] == name.strip() and said in problem["seen"]
    assert node.state() == before


def test_no_way_back_to_be_seen_is_a_refusal(node: OneNode) -> None:
    node.machines.session = ""
    refused = node.apply()
    assert "the way back cannot be seen" in refused["problems"][0]["seen"]


def test_an_applied_ring_under_rdma_is_neither_changed_nor_rolled_back(node: OneNode) -> None:
    assert node.apply()["ok"]
    node.sh("setsid tail -f /dev/null </dev/infiniband/uverbs0 >/dev/null 2>&1 & sleep 0.1")
    assert node.prepare()["ok"], "nothing is to be done, so nothing is in the way"
    assert node.rollback(guarded=True)["problems"][0]["where"] == "RDMA"
    node.sh("ip neigh del {to} dev {dev}".format(**node.words()))
    assert node.apply()["problems"][0]["where"] == "RDMA"


def test_problem_17_queues_that_only_pend(node: OneNode) -> None:
    """8192 shown, and no re-initialisation since: set by somebody, or by us a moment ago."""
    node.sh("echo 0 >/run/devlink.0000:01:00.0.reloads")
    assert node.states()["hairpin enp1s0f0np0"] == "pending"
    node.sh("echo 1024 >/run/devlink.0000:01:00.1.hairpin_queue_size")
    assert node.states()["hairpin enp1s0f1np1"] == "different"
    done = node.ask("hairpin", undo=False)
    assert {one["state"] for one in done["hairpin"]} == {"in effect"}
    shown = node.sh("cat /run/devlink.*.reloads /run/devlink.*.hairpin_queue_size")
    assert shown.split() == ["1", "2", "8192"], "the two others stay as they were"
    back = node.ask("hairpin", undo=True)["hairpin"]
    assert [(one["netdev"], one["size"]) for one in back] == [
        ("enp1s0f0np0", 8192),
        ("enp1s0f1np1", 1024),
    ]
    assert node.states()["hairpin enp1s0f1np1"] == "different"


def test_queues_are_set_under_no_ring_and_no_rdma(node: OneNode) -> None:
    node.sh("echo 0 >/run/devlink.0000:01:00.0.reloads")
    assert node.apply()["ok"]
    refused = node.ask("hairpin", undo=False)
    assert "its rules would be lost" in refused["problems"][0]["seen"]
    node.rollback()
    node.sh("setsid tail -f /dev/null </dev/infiniband/uverbs0 >/dev/null 2>&1 & sleep 0.1")
    assert node.ask("hairpin", undo=False)["problems"][0]["where"] == "RDMA"
    assert node.sh("cat /run/devlink.0000:01:00.0.reloads").strip() == "0"


def test_a_card_that_does_not_reload_ends_the_step(node: OneNode) -> None:
    node.sh("echo 0 | tee /run/devlink.0000:01:00.0.reloads >/run/devlink.0000:01:00.1.reloads")
    node.sh("echo 1 >/run/devlink.fault")
    refused = node.ask("hairpin", undo=False)
    assert "resource busy" in refused["problems"][0]["seen"]
    assert node.states()["hairpin enp1s0f0np0"] == "pending"


def test_without_a_word_the_node_goes_back_by_itself(node: OneNode) -> None:
    before = node.state()
    assert node.apply(seconds=2.0)["ok"]
    deadline = time.monotonic() + 20
    while node.ask("look")["journal"] is not None:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert node.state() == before
    last = node.ask("look")["last"]
    assert last["by"] == "timer" and len(last["undone"]) == 10
    assert "nothing is applied" in node.confirm()["problems"][0]["seen"]


def test_a_commit_killed_half_way_goes_back_by_itself(node: OneNode) -> None:
    """The timer runs before the first change, and is no part of the program that was killed."""
    before = node.state()
    assert node.prepare()["ok"]
    request = node.wanted.request("commit", "t", seconds=1.0)
    assert "killed" in node.machines.ask(node.name, request, cut=32)
    assert node.state() != before
    deadline = time.monotonic() + 20
    while node.ask("look")["journal"] is not None:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert node.state() == before


def test_a_confirmed_apply_stays(node: OneNode) -> None:
    assert node.apply(seconds=20)["ok"]
    journal = node.ask("look")["journal"]
    assert journal["timer"] and journal["phase"] == "applied" and 0 < journal["seconds_left"] < 20
    assert node.confirm()["ok"]
    deadline = time.monotonic() + 15
    while node.ask("look")["journal"]["timer"]:
        assert time.monotonic() < deadline, "who would undo it ends at once"
        time.sleep(0.1)
    journal = node.ask("look")["journal"]
    assert journal["phase"] == "confirmed" and journal["seconds_left"] is None
    assert node.states() == {}
