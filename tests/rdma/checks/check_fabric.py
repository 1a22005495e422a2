"""Real counters of RDMA devices: which rails a group of ranks used, and which it did not."""

from collections.abc import Callable
from dataclasses import asdict, replace

import torch

from tests.collectives.cluster import Cluster
from tests.rdma.checks.check_worlds import start
from tetraspark.fabric.function import NodeFabric
from tetraspark.fabric.inventory import read_fabric
from tetraspark.fabric.inventory_rdma import ROOT
from tetraspark.fabric.prove import prove
from tetraspark.fleet.facts import Facts, Wanted
from tetraspark.fleet.inside.look import look

NODES = tuple(f"n{number}" for number in range(4))
DEVICES = {node: (f"{node}r0", f"{node}r1") for node in NODES}
# Less than all of it: each file takes a millisecond under emulation, and a table has 1024 GIDs.
COUNTERS = Wanted(
    files=(f"{ROOT}/n[0-3]r[01]/ports/1/hw_counters/*", f"{ROOT}/n[0-3]r[01]/ports/1/state"),
    commands={
        "addresses": ("ip", "-j", "-d", "addr", "show"),
        "rdma link": ("rdma", "-j", "link", "show"),
    },
)


def nodes() -> dict[str, NodeFabric]:
    """All nodes share one kernel here, so each gets the functions that bear its name."""
    fabric = read_fabric(Facts.of("vm", look(asdict(COUNTERS))))
    found = {}
    for node in NODES:
        own = tuple(one for one in fabric.functions if one.netdev[:2] == node and one.counters)
        assert [one.rdma for one in own] == list(DEVICES[node])
        found[node] = replace(fabric, node=node, functions=own)
    return found


def test_rails_that_carry_and_a_rail_that_nobody_used(cluster: Callable[..., Cluster]) -> None:
    before = nodes()
    ranks = start(cluster, 4, 1)
    answers = ranks.call([0, 1, 2, 3], "reduce", (4096,), torch.bfloat16, 1, "new")
    assert [answer[0] for answer in answers] == ["ok"] * 4
    assert [answer[0] for answer in ranks.call([0, 1, 2, 3], "close")] == ["ok"] * 4
    found = prove(before, nodes(), 1.0, NODES, DEVICES)
    print([(one.where, one.packets_sent, one.packets_received) for one in found.rails])
    assert len(found.rails) == 8 and not found.proved
    verdicts = {one.device: one.verdict for one in found.rails}
    assert verdicts == {f"{node}r0": "carries" for node in NODES} | {
        f"{node}r1": "idle" for node in NODES
    }
    assert all(one.sent is None and one.packets_sent for one in found.rails if one.share)
    assert [one.where for one in found.problems()] == [f"{node} {node}r1" for node in NODES]
    first = {node: names[:1] for node, names in DEVICES.items()}
    assert prove(before, nodes(), 1.0, NODES, first).proved
