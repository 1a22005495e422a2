"""A node program killed at any write: the journal still knows all, and a rollback undoes it."""

from typing import Any

import pytest

from tests.ring_apply.machines import Machines
from tetraspark.ring.plan import RingPlan
from tetraspark.ring.wanted import NodeWanted, wanted

NODE = "spark0"
BACK = {"verb": "rollback", "by": "test", "guarded": False, "label": "x"}
OFF = """
ip link set enp1s0f0np0 mtu 1500
ip addr del 10.10.0.10/24 dev enp1s0f0np0
echo dmfs >/run/devlink.0000:01:00.0.flow_steering_mode
echo off >/run/offload.enp1s0f0np0
"""


def one_of_each(node: NodeWanted) -> list[dict[str, Any]]:
    """Return the first object of every kind."""
    found: dict[str, dict[str, Any]] = {}
    for one in node.objects:
        found.setdefault(one["kind"], one)
    return list(found.values())


@pytest.mark.parametrize("after", [False, True], ids=["done, not noted", "noted, not done"])
def test_a_kill_at_every_write_of_a_commit_is_undone(
    machines: Machines, plan: RingPlan, after: bool
) -> None:
    """Cut off before a write, the deed before it is done; after an intention, its deed is not."""
    machines.sh(NODE, OFF, check=True)
    before = machines.state(NODE)
    node = wanted(plan)[0]
    objects = one_of_each(node)
    assert len(objects) == 9
    more = {"objects": objects, "seconds": 600, "devices": ["enp1s0f0np0"]}
    cuts = [3, 5, 7, 9, 11, 13, 15, 17, 19] if after else [1, 2, 3, *range(4, 24, 2)]
    for cut in cuts:
        assert machines.ask(NODE, node.request("prepare", f"{cut}", **more))["ok"]
        ended = machines.ask(NODE, node.request("commit", f"{cut}", **more), cut=cut, after=after)
        if "killed" not in ended:
            assert ended["ok"], f"at write {cut}: {ended}"
            break
        back = machines.ask(NODE, BACK)
        assert back["ok"] and not back["failed"] and not back["left"] and not back["differences"]
        assert machines.state(NODE) == before, f"after a kill at write {cut}"
    if not after:
        assert cut == 2 + 2 * 9 + 2
        assert ended["ok"] and ended["done"] == 9


def test_a_kill_at_every_write_of_a_rollback_is_resumed(machines: Machines, plan: RingPlan) -> None:
    machines.sh(NODE, OFF, check=True)
    before = machines.state(NODE)
    node = wanted(plan)[0]
    more = {"objects": one_of_each(node), "seconds": 600}
    assert machines.ask(NODE, node.request("prepare", "a", **more))["ok"]
    assert machines.ask(NODE, node.request("commit", "a", **more))["ok"]
    for cut in range(1, 40):
        ended = machines.ask(NODE, BACK, cut=cut % 3 + 1)
        if "killed" not in ended:
            break
    assert ended["outcome"] == "rolled back" and not ended["differences"]
    assert machines.state(NODE) == before
    assert machines.ask(NODE, BACK)["outcome"] == "nothing"


def test_a_commit_that_was_cut_off_can_be_done_again(machines: Machines, plan: RingPlan) -> None:
    before = machines.state(NODE)
    node = wanted(plan)[0]
    assert machines.ask(NODE, node.request("prepare", "a"))["ok"]
    assert "killed" in machines.ask(NODE, node.request("commit", "a", seconds=600), cut=30)
    again = machines.ask(NODE, node.request("prepare", "b"))
    assert again["ok"] and again["phase"] == "committing"
    assert machines.ask(NODE, node.request("commit", "b", seconds=600))["ok"]
    back = machines.ask(NODE, BACK)
    assert back["outcome"] == "rolled back" and not back["differences"]
    assert machines.state(NODE) == before
