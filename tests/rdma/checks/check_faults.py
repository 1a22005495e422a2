"""Faults of a running group: every rank names the same cause, peer and lane, in time."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import tests.rdma.reopening  # noqa: F401  # gives the ranks their command "reopen"
from tests.collectives.cluster import Cluster
from tests.rdma.network import (
    SWITCH,
    down,
    give_address,
    over,
    plug,
    switch_wiring,
    take_address,
    unplug,
    up,
)
from tetraspark.collectives.settings import Settings
from tetraspark.collectives.verbs_options import VerbsOptions

Start = Callable[..., Cluster]
WIRING = switch_wiring(4, 2)
SETTINGS = Settings(
    max_reduce_bytes=1 << 14,
    max_gather_bytes=1 << 12,
    lanes=2,
    routes=WIRING.routes(),
    freeze_limit_s=0.5,
    spins=0,
    yields=20,
)
BOUND_S = 2.0
"""A beat, the connection's own 0.475 s, 0.15 s to tell a lane from a node, 0.5 s to agree."""
WAITED_S = 0.5


@pytest.fixture
def ranks(cluster: Start) -> Iterator[Cluster]:
    """Four ranks on two rails, and the network whole again afterwards."""
    made = cluster(4, settings=SETTINGS, transport=over(WIRING))
    assert [answer[0] for answer in made.opened] == ["ok"] * 4, made.opened
    # The first use of torch is slow under emulation, and would count as a wait.
    answers = made.call([0, 1, 2, 3], "reduce", (1024,), torch.bfloat16, 1, "new")
    assert [answer[0] for answer in answers] == ["ok"] * 4, answers
    yield made
    for port in SWITCH.ports:
        subprocess.run(["tc", "qdisc", "replace", "dev", port.name, "root", "noqueue"], check=True)


def loss(port: str) -> None:
    """Lose all that a port sends, while the port itself stays active."""
    subprocess.run(["tc", "qdisc", "add", "dev", port, "root", "netem", "loss", "100%"], check=True)


def root_after(ranks: Cluster, break_it: Callable[[], object], dead: int = -1) -> dict[str, Any]:
    """Let all but rank 1 wait in a reduction, break something; return the root all ranks raise."""
    waiting = [0, 2, 3]
    for rank in waiting:
        ranks.tell(rank, "reduce", (1024,), torch.bfloat16, 1, "new")
    if dead < 0:
        ranks.tell(1, "check", 20.0, False)
    time.sleep(WAITED_S)
    break_it()
    answers = [ranks.answer(rank) for rank in (waiting if dead >= 0 else [0, 1, 2, 3])]
    assert [answer[:2] for answer in answers] == [("error", "CollectiveError")] * len(answers)
    root: dict[str, Any] = answers[0][2]
    slowest = max(answer[3] for answer in answers) - WAITED_S
    print(f"\nafter {slowest:.2f} s: {root}")
    assert [answer[2] for answer in answers] == [root] * len(answers)
    assert slowest < BOUND_S
    return root


def test_a_killed_rank(ranks: Cluster) -> None:
    root = root_after(ranks, lambda: ranks.signal(1, signal.SIGKILL), dead=1)
    assert (root["kind"], root["peer"]) == ("dead", 1)
    # Whoever is first names it: the supervisor of its process, or a device on its last lane.
    if root["lane"] < 0:
        assert root["detail"].startswith("its process is gone")
    else:
        assert "have all failed" in root["detail"]


def test_a_stopped_rank(ranks: Cluster) -> None:
    root = root_after(ranks, lambda: ranks.signal(1, signal.SIGSTOP), dead=1)
    assert (root["kind"], root["peer"]) == ("frozen", 1)
    ranks.signal(1, signal.SIGCONT)
    ranks.tell(1, "check", 5.0, True)
    assert ranks.answer(1)[2] == root


def test_a_pulled_cable(ranks: Cluster) -> None:
    try:
        root = root_after(ranks, lambda: unplug(SWITCH, "n1r0"))
    finally:
        plug(SWITCH, "n1r0")
    assert (root["kind"], root["peer"], root["lane"]) == ("port", 1, 0)
    assert root["detail"].startswith("n1r0: its own port ")


def test_a_port_set_down(ranks: Cluster) -> None:
    try:
        root = root_after(ranks, lambda: down("n2r1"))
    finally:
        up(SWITCH, "n2r1")
    assert (root["kind"], root["peer"], root["lane"]) == ("port", 2, 1)


def test_retries_exhausted_on_an_active_port(ranks: Cluster) -> None:
    root = root_after(ranks, lambda: loss("n3r1"))
    # Who finds it first names it: rank 3 sees that its device reaches nobody, a peer sees one lane.
    assert (root["peer"], root["lane"]) == (3, 1)
    kind, words = ("lane", "r1: ") if root["reporter"] != 3 else ("port", "none of its 3 peers")
    assert root["kind"] == kind and words in root["detail"]


def test_an_outage_within_the_connections_patience_is_survived(cluster: Start) -> None:
    patient = VerbsOptions(timeout=19)
    ranks = cluster(4, settings=SETTINGS, transport=over(WIRING, patient))
    assert [answer[0] for answer in ranks.opened] == ["ok"] * 4, ranks.opened
    for rank in (0, 2, 3):
        ranks.tell(rank, "reduce", (1024,), torch.bfloat16, 1, "new")
    start = time.monotonic()
    cut = "tc qdisc add dev n1r0 root netem loss 100% && sleep 0.3; tc qdisc del dev n1r0 root"
    subprocess.run(["bash", "-c", cut], check=True)
    out = time.monotonic() - start
    ranks.tell(1, "reduce", (1024,), torch.bfloat16, 1, "new")
    answers = [ranks.answer(rank) for rank in range(4)]
    print(f"\nan outage of 0.3 to {out:.2f} s, patience {patient.give_up_s:.2f} s")
    assert out < patient.give_up_s
    assert [answer[0] for answer in answers] == ["ok"] * 4, answers


def test_a_rank_killed_while_all_are_idle(ranks: Cluster) -> None:
    ranks.signal(1, signal.SIGKILL)
    time.sleep(BOUND_S)
    answers = ranks.call([0, 2, 3], "check", 1.0, True)
    assert all(answer[2] == answers[0][2] for answer in answers)
    assert (answers[0][2]["kind"], answers[0][2]["peer"]) == ("dead", 1)


def test_an_address_removed_and_its_new_index_found(
    ranks: Cluster, cluster: Start, tmp_path: Path
) -> None:
    try:
        root = root_after(ranks, lambda: take_address(SWITCH, "n1r0"))
        assert (root["kind"], root["peer"], root["lane"]) == ("port", 1, 0)
        assert "its own address 10.10.0.2 is gone" in root["detail"]
        refused = cluster(4, settings=SETTINGS, transport=over(WIRING)).opened
        assert [answer[:2] for answer in refused] == [("error", "RefusedError")] * 4
        for answer in refused:
            assert answer[2].startswith("rank 1: ")
            assert "node node1, device n1r0: only fe80::" in answer[2]
            assert "wanted: a RoCE v2 GID of 10.10.0.2" in answer[2]
    finally:
        give_address(SWITCH, "n1r0")
    # In the same processes, which still hold what the group that failed had found.
    answers = ranks.call([0, 1, 2, 3], "reopen", tmp_path, SETTINGS, over(WIRING))
    assert [answer[0] for answer in answers] == ["ok"] * 4, answers
    indices = [index for _, index in answers]
    assert indices[1] != 1 and indices[0] == indices[2] == indices[3] == 1


def test_a_small_mtu_and_a_port_that_is_down_refuse_all(cluster: Start) -> None:
    subprocess.run(["ip", "link", "set", "n0r1", "mtu", "1500"], check=True)
    down("n3r0")
    try:
        refused = cluster(4, settings=SETTINGS, transport=over(WIRING)).opened
    finally:
        subprocess.run(["ip", "link", "set", "n0r1", "mtu", "9000"], check=True)
        up(SWITCH, "n3r0")
    assert [answer[:2] for answer in refused] == [("error", "RefusedError")] * 4
    for answer in refused:
        assert "node node0, device n0r1: active RDMA MTU 1024; wanted: at least 4096" in answer[2]
        assert "node node3, device n3r0: port 1 is DOWN; wanted: state ACTIVE" in answer[2]


def test_a_wrong_subnet_is_found_by_the_proof(cluster: Start) -> None:
    """Connections are made without a packet; only the proof shows that nothing arrives."""
    loss("n2r1")
    try:
        refused = cluster(4, settings=replace(SETTINGS, late_limit_s=20.0), transport=over(WIRING))
        assert [answer[:2] for answer in refused.opened] == [("error", "RefusedError")] * 4
        assert all("rank 2 lane 1" in answer[2] for answer in refused.opened), refused.opened
    finally:
        subprocess.run(["tc", "qdisc", "del", "dev", "n2r1", "root"], check=True)
