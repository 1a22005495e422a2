"""One node of the four, with its part of the plan put in place by the node program itself."""

from collections.abc import Mapping
from typing import Any

from tests.ring_apply.machines import Machines
from tetraspark.ring.plan import RingPlan
from tetraspark.ring.wanted import wanted


class OneNode:
    """spark1: its devices, its part of the plan, and the node program's answers."""

    name = "spark1"

    def __init__(self, machines: Machines, plan: RingPlan) -> None:
        self.machines = machines
        self.wanted = wanted(plan)[1]
        self.planned = plan.nodes[1]
        self.functions = plan.members[1].functions

    def sh(self, script: str) -> str:
        """Run a shell script on the node."""
        return self.machines.sh(self.name, script, check=True)

    def ask(self, verb: str, token: str = "t", **more: Any) -> dict[str, Any]:
        """Return the node program's answer."""
        return self.machines.ask(self.name, self.wanted.request(verb, token, **more))

    def prepare(self, **more: Any) -> dict[str, Any]:
        """Return the answer to `prepare`."""
        return self.ask("prepare", **more)

    def apply(self, **more: Any) -> dict[str, Any]:
        """Prepare and commit; returns the last answer."""
        prepared = self.prepare(**more)
        return self.ask("commit", **{"seconds": 600, **more}) if prepared["ok"] else prepared

    def rollback(self, guarded: bool = False) -> dict[str, Any]:
        """Undo what is applied."""
        return self.ask("rollback", by="test", guarded=guarded)

    def confirm(self, files: Any = ()) -> dict[str, Any]:
        """Keep what is applied."""
        return self.ask("confirm", files=files)

    def states(self) -> dict[str, str]:
        """Return every object that is not as planned, with its state; hairpin queues too."""
        found = self.ask("look")
        assert found["ok"], found
        wrong = {one["key"]: one["state"] for one in found["objects"] if one["state"] != "present"}
        queues = {f"hairpin {one['netdev']}": one["state"] for one in found["hairpin"]}
        return wrong | {key: state for key, state in queues.items() if state != "in effect"}

    def details(self) -> str:
        """Return what is said about the objects that are not as planned."""
        found = self.ask("look")["objects"]
        return " | ".join(one["detail"] for one in found if one["state"] != "present")

    def state(self) -> dict[str, Any]:
        """Return all of the node that the plan could touch."""
        return self.machines.state(self.name)

    def words(self) -> Mapping[str, str]:
        """Return the names that scripts of tests need, for `format`."""
        route, there = self.planned.routes[0], self.planned.neighbours[0]
        rule = self.planned.rules[0]
        by_name = {one.netdev: one for one in self.functions}
        other = next(dev for dev in by_name if dev not in (rule.netdev, rule.redirect))
        return {
            "dev": route.netdev,
            "to": str(route.destination),
            "src": str(route.source),
            "via": str(by_name[route.netdev].interface.network[9]),
            "mac": there.mac,
            "add": " ".join(rule.argv("add")),
            "del": " ".join(rule.argv("del")),
            "in": rule.netdev,
            "card": rule.new_mac,
            "out": rule.redirect,
            "other": other,
            "othermac": by_name[other].mac,
        }
