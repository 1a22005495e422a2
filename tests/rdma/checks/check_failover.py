"""One rail fails under a stream of all-reduces: every bit right, degraded and said, then back.

One group lives through all of it, so each failover finds the lanes that the last one made anew.
"""

import multiprocessing
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

import tests.rdma.streaming  # noqa: F401  # gives the ranks their command "stream"
from tests.collectives.cluster import Cluster
from tests.rdma.checks.check_faults import SETTINGS as FAULT_SETTINGS
from tests.rdma.checks.check_faults import WIRING, loss
from tests.rdma.checks.conftest import REPLY_LIMIT_S
from tests.rdma.network import SWITCH, down, give_address, over, plug, take_address, unplug, up
from tests.rdma.streaming import oracle
from tetraspark.collectives.verbs_options import VerbsOptions

Start = Callable[..., Cluster]
SETTINGS = replace(FAULT_SETTINGS, freeze_limit_s=20.0)
OPTIONS = VerbsOptions(min_lanes=1, timeout=16, retries=4)
"""Patient, 1.3 s: emulated cores with other work must not look like a broken rail."""
EVERYONE = [0, 1, 2, 3]
COUNT = 36
AWAIT_S = 60.0
Lanes = list[dict[str, Any]]
"""All ranks' lanes, each with its rank."""


def delay(port: str) -> None:
    """Let what a port sends arrive 1.5 s late: after the connection gave up and was replaced."""
    netem = ["netem", "delay", "1500ms", "limit", "9999"]
    subprocess.run(["tc", "qdisc", "add", "dev", port, "root", *netem], check=True)


def clear(port: str) -> None:
    """Take away what delays or loses packets."""
    subprocess.run(["tc", "qdisc", "replace", "dev", port, "root", "noqueue"], check=True)


@dataclass(frozen=True)
class Fault:
    """What breaks `lane` under the stream, `after_s` from its start, and what mends it."""

    lane: int
    after_s: float
    break_it: Callable[[], object]
    mend: Callable[[], object]


FAULTS = {
    "port down": Fault(0, 0.05, lambda: down("n1r0"), lambda: up(SWITCH, "n1r0")),
    "cable pulled": Fault(1, 0.2, lambda: unplug(SWITCH, "n2r1"), lambda: plug(SWITCH, "n2r1")),
    "all lost": Fault(1, 0.4, lambda: loss("n3r1"), lambda: clear("n3r1")),
    "late packets": Fault(0, 0.3, lambda: delay("n0r0"), lambda: clear("n0r0")),
    "address removed": Fault(
        0, 0.1, lambda: take_address(SWITCH, "n1r0"), lambda: give_address(SWITCH, "n1r0")
    ),
}


@pytest.fixture(scope="module")
def ranks() -> Iterator[Cluster]:
    """Four ranks on two rails, for which one lane is enough."""
    transport = over(WIRING, OPTIONS)
    fork = multiprocessing.get_context("fork")
    made = Cluster(
        4, settings=SETTINGS, transport=transport, reply_limit_s=REPLY_LIMIT_S, context=fork
    )
    try:
        assert [answer[0] for answer in made.opened] == ["ok"] * 4, made.opened
        yield made
    finally:
        made.stop()


def lanes_of(ranks: Cluster) -> Lanes:
    """Return what every rank says of its lanes now."""
    states = ranks.call(EVERYONE, "state")
    return [
        {"rank": rank, **lane}
        for rank, (_, state) in enumerate(states)
        for lane in state["details"]["lanes"]
    ]


def await_lanes(ranks: Cluster, wanted: Callable[[Lanes], bool]) -> Lanes:
    """Wait until all ranks' lanes are as wanted; return them."""
    end = time.monotonic() + AWAIT_S
    while not wanted(lanes := lanes_of(ranks)):
        assert time.monotonic() < end, [one for one in lanes if one["broken"]]
        time.sleep(0.1)
    return lanes


def whole(lanes: Lanes) -> bool:
    """Say whether every lane carries."""
    return all(one["state"] == "up" for one in lanes)


def lost_on(lane: int, lanes: Lanes) -> bool:
    """Say whether this lane of some pair does not carry."""
    return any(one["lane"] == lane and one["state"] == "down" for one in lanes)


def check_stream(ranks: Cluster, first: int, count: int) -> None:
    """Stream, and compare with the oracle."""
    answers = ranks.call(EVERYONE, "stream", first, count)
    assert answers == [("ok", oracle(4, first, count))] * 4


def total(lanes: Lanes, name: str) -> int:
    """Return the sum of one counter."""
    return sum(int(one[name]) for one in lanes)


@pytest.mark.parametrize("name", FAULTS)
def test_a_rail_fails_under_a_stream_and_comes_back(ranks: Cluster, name: str) -> None:
    fault = FAULTS[name]
    before = await_lanes(ranks, whole)
    start = time.monotonic()
    for rank in EVERYONE:
        ranks.tell(rank, "stream", 100, COUNT)
    time.sleep(fault.after_s)
    try:
        fault.break_it()
        answers = [ranks.answer(rank) for rank in EVERYONE]
        took = time.monotonic() - start
        await_lanes(ranks, partial(lost_on, fault.lane))
    finally:
        fault.mend()
    assert answers == [("ok", oracle(4, 100, COUNT))] * 4
    start = time.monotonic()
    after = await_lanes(ranks, whole)
    back = time.monotonic() - start
    lost = [
        one for one, old in zip(after, before, strict=True) if one["failures"] > old["failures"]
    ]
    resent = total(after, "resent") - total(before, "resent")
    slowest = max(one["settled_s"] for one in lost)
    print(
        f"\n{name}: stream {took:.2f} s, {resent} stripes again, back after {back:.2f} s, "
        f"agreed after {slowest / OPTIONS.give_up_s:.2f} give-ups"
    )
    assert fault.lane in {one["lane"] for one in lost}
    check_stream(ranks, 1000, 14)
    for new, old in zip(lanes_of(ranks), after, strict=True):
        assert new["writes"] > old["writes"]


def test_a_device_that_dies_then_no_lane_left(ranks: Cluster) -> None:
    """A fatal event is given to rank 2 for its device 1; then rank 1 loses the other rail."""
    await_lanes(ranks, whole)
    for rank in EVERYONE:
        ranks.tell(rank, "stream", 100, COUNT, "device" if rank == 2 else "", 1)
    answers = [ranks.answer(rank) for rank in EVERYONE]
    assert answers == [("ok", oracle(4, 100, COUNT))] * 4
    failed = [one for one in lanes_of(ranks) if one["rank"] == 2 and one["broken"]]
    assert [one["lane"] for one in failed] == [1, 1, 1]
    assert {one["broken"] for one in failed} == {"event: local catastrophic error"}
    for rank in EVERYONE:
        ranks.tell(rank, "stream", 100, 1000)
    down("n1r0")
    try:
        answers = [ranks.answer(rank) for rank in EVERYONE]
    finally:
        up(SWITCH, "n1r0")
    assert [answer[:2] for answer in answers] == [("error", "CollectiveError")] * 4, answers
    root = answers[0][2]
    print(f"\n{root}")
    assert all(answer[2] == root for answer in answers)
    assert root["kind"] in ("port", "dead") and root["peer"] == 1


def test_a_group_starts_degraded_where_it_may_and_the_lane_joins(cluster: Start) -> None:
    down("n3r0")
    try:
        transport = over(WIRING, OPTIONS)
        ranks = cluster(4, settings=SETTINGS, transport=transport)
        assert [answer[0] for answer in ranks.opened] == ["ok"] * 4, ranks.opened
        check_stream(ranks, 0, 14)
        absent = [one for one in lanes_of(ranks) if one["broken"]]
    finally:
        up(SWITCH, "n3r0")
    assert {(one["rank"], one["peer"]) for one in absent} == {
        *((3, peer) for peer in (0, 1, 2)),
        *((rank, 3) for rank in (0, 1, 2)),
    }
    for one in absent:
        assert one["lane"] == 0 and one["writes"] == 0
        assert "node node3, device n3r0: port 1 is DOWN" in one["broken"]
    await_lanes(ranks, whole)
    check_stream(ranks, 0, 14)
    assert all(one["writes"] > 0 for one in lanes_of(ranks))
