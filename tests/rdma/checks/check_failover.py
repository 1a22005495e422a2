"""One rail fails under a stream of all-reduces: every bit right, degraded and said, then back."""

import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tests.rdma.injection
import tests.rdma.streaming  # noqa: F401  # gives the ranks their command "stream"
from tests.collectives.cluster import Cluster
from tests.rdma.checks.check_faults import SETTINGS, WIRING, loss
from tests.rdma.network import (
    SWITCH,
    down,
    give_address,
    over,
    plug,
    take_address,
    unplug,
    up,
)
from tests.rdma.streaming import oracle
from tetraspark.collectives.verbs_options import VerbsOptions

Start = Callable[..., Cluster]
EVERYONE = [0, 1, 2, 3]
OPTIONS = VerbsOptions(min_lanes=1)
COUNT = 60
REJOIN_S = 30.0


def clear(port: str) -> None:
    """Take away what delays or loses packets."""
    subprocess.run(["tc", "qdisc", "replace", "dev", port, "root", "noqueue"], check=True)


def delay(port: str) -> None:
    """Let all that a port sends arrive 1.5 s late: long after the connection gave up."""
    command = [
        "tc",
        "qdisc",
        "add",
        "dev",
        port,
        "root",
        "netem",
        "delay",
        "1500ms",
        "limit",
        "9999",
    ]
    subprocess.run(command, check=True)


FAULTS: dict[str, tuple[Callable[[], object], Callable[[], object], int]] = {
    "port down": (lambda: down("n1r0"), lambda: up(SWITCH, "n1r0"), 0),
    "cable pulled": (lambda: unplug(SWITCH, "n2r1"), lambda: plug(SWITCH, "n2r1"), 1),
    "address removed": (
        lambda: take_address(SWITCH, "n1r0"),
        lambda: give_address(SWITCH, "n1r0"),
        0,
    ),
    "all lost": (lambda: loss("n3r1"), lambda: clear("n3r1"), 1),
    "late packets": (lambda: delay("n0r0"), lambda: clear("n0r0"), 0),
}


def lanes_of(ranks: Cluster) -> list[list[dict[str, Any]]]:
    """Return each rank's lanes."""
    return [state["details"]["lanes"] for _, state in ranks.call(EVERYONE, "state")]


def await_lanes(ranks: Cluster, limit_s: float) -> float:
    """Wait until every lane of every rank carries; return the seconds it took."""
    start = time.monotonic()
    while any(one["broken"] for lanes in lanes_of(ranks) for one in lanes):
        assert time.monotonic() - start < limit_s, lanes_of(ranks)
        time.sleep(0.1)
    return time.monotonic() - start


@pytest.fixture(scope="module")
def ranks() -> Iterator[Cluster]:
    """Four ranks on two rails for which one lane is enough."""
    import multiprocessing

    fork = multiprocessing.get_context("fork")
    made = Cluster(
        4, settings=SETTINGS, transport=over(WIRING, OPTIONS), reply_limit_s=90, context=fork
    )
    try:
        assert [answer[0] for answer in made.opened] == ["ok"] * 4, made.opened
        yield made
    finally:
        made.stop()


@pytest.mark.parametrize("after_s", [0.2, 0.7])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_rail_fails_under_a_stream_and_comes_back(
    ranks: Cluster, fault: str, after_s: float
) -> None:
    break_it, heal, lane = FAULTS[fault]
    before = lanes_of(ranks)
    start = time.monotonic()
    for rank in EVERYONE:
        ranks.tell(rank, "stream", 0, COUNT)
    time.sleep(after_s)
    try:
        break_it()
        answers = [ranks.answer(rank) for rank in EVERYONE]
        took = time.monotonic() - start
        assert [answer[0] for answer in answers] == ["ok"] * 4, answers
        assert all(digests == oracle(4, 0, COUNT) for _, digests in answers)
        states = [state for _, state in ranks.call(EVERYONE, "state")]
    finally:
        heal()
    lost = [one for state in states for one in state["details"]["lanes"] if one["broken"]]
    assert lost and {one["lane"] for one in lost} == {lane}
    back = await_lanes(ranks, REJOIN_S)
    resent = sum(one["resent"] for lanes in lanes_of(ranks) for one in lanes)
    print(
        f"\n{fault} after {after_s} s: stream {took:.2f} s, back after {back:.2f} s, {resent} again"
    )
    print([state["details"]["degraded"] for state in states])
    answers = ranks.call(EVERYONE, "stream", 1000, 14)
    assert answers == [("ok", oracle(4, 1000, 14))] * 4
    after = lanes_of(ranks)
    for old, new in zip(before, after, strict=True):
        assert all(b["writes"] > a["writes"] for a, b in zip(old, new, strict=True))
