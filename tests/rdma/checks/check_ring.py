"""Four nodes in a ring, two cables to each next one: opposite nodes through both neighbours."""

import time
from collections.abc import Callable
from pathlib import Path

import torch

from tests.collectives.cluster import Cluster
from tests.collectives.oracle import raw, reduced, shard
from tests.rdma.network import RING, over, plug, unplug, wiring_of_ring
from tetraspark.collectives.settings import Settings

Start = Callable[..., Cluster]
WIRING = wiring_of_ring()
SETTINGS = Settings(
    max_reduce_bytes=1 << 17,
    max_gather_bytes=1 << 15,
    lanes=2,
    routes=WIRING.routes(),
    spins=0,
    yields=20,
)
EVERYONE = [0, 1, 2, 3]
BOUND_S = 2.0


def forwarded() -> int:
    """Return how many datagrams this kernel has passed on, of all nodes."""
    lines = Path("/proc/net/snmp").read_text().splitlines()
    names, values = (line.split() for line in lines if line.startswith("Ip:"))
    return int(values[names.index("ForwDatagrams")])


def test_bits_and_what_the_neighbours_forward(cluster: Start) -> None:
    before = forwarded()
    ranks = cluster(4, settings=SETTINGS, transport=over(WIRING))
    assert [answer[0] for answer in ranks.opened] == ["ok"] * 4, ranks.opened
    for seed, shape in enumerate([(8,), (5, 40), (1 << 14,), (1 << 15,)]):
        wanted = raw(reduced([shard(seed, rank, shape) for rank in EVERYONE]))
        answers = ranks.call(EVERYONE, "reduce", shape, torch.bfloat16, seed, "new")
        assert answers == [("ok", wanted)] * 4
    assert forwarded() - before > 100
    for rank, (_, state) in enumerate(ranks.call(EVERYONE, "state")):
        used = {
            (one["peer"], one["device"], one["peer_device"]): one["writes"]
            for one in state["details"]["lanes"]
        }
        opposite = (rank + 2) % 4
        mine = [key for key in used if key[0] == opposite]
        assert len(mine) == 2 and all(used[key] == 2 * 8 for key in used)
        # Out by one neighbour and in from the same side, once each way round.
        assert sorted((own[-1], far[-1]) for _, own, far in mine) == [("a", "b"), ("b", "a")]
    answers = ranks.call(EVERYONE, "many", 50, (2048,))
    assert len({answer for _, answer in answers}) == 1


def test_a_cable_of_the_ring_is_named_by_all(cluster: Start) -> None:
    ranks = cluster(4, settings=SETTINGS, transport=over(WIRING))
    assert [answer[0] for answer in ranks.opened] == ["ok"] * 4, ranks.opened
    for rank in (0, 2, 3):
        ranks.tell(rank, "reduce", (1024,), torch.bfloat16, 1, "new")
    ranks.tell(1, "check", 20.0, False)
    time.sleep(0.5)
    try:
        unplug(RING, "n1r0a")
        answers = [ranks.answer(rank) for rank in EVERYONE]
    finally:
        plug(RING, "n1r0a")
    root = answers[0][2]
    slowest = max(answer[3] for answer in answers) - 0.5
    print(f"\nafter {slowest:.2f} s: {root}")
    assert [answer[2] for answer in answers] == [root] * 4
    assert root["kind"] == "port" and slowest < BOUND_S
    # The cable joins node 1's port to node 2's: either may say so first.
    assert root["peer"] in (1, 2) and root["detail"].split(":")[0] in ("n1r0a", "n2r0b")
