"""What a plan wants of each node, in the terms of the node program. Pure."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from tetraspark.fleet.container import LINE
from tetraspark.ring.marker import Marker
from tetraspark.ring.persist import persistent_files
from tetraspark.ring.plan import RingPlan
from tetraspark.ring.rule import RelayRule

Object = dict[str, Any]


@dataclass(frozen=True)
class NodeWanted:
    """A node's objects, its persistent files, the hairpin queues, and the devices of all that."""

    node: str
    plan: str
    objects: tuple[Object, ...]
    files: tuple[Object, ...]
    hairpin: tuple[Object, ...]
    addresses: Mapping[str, str]
    devices: tuple[str, ...]

    def request(self, verb: str, token: str | None = "", **more: Any) -> dict[str, Any]:
        """Return a request to the node program."""
        return {
            "verb": verb,
            "plan": self.plan,
            "token": token,
            "objects": self.objects,
            "files": self.files,
            "hairpin": self.hairpin,
            "devices": self.devices,
            "addresses": self.addresses,
            "label": LINE,
            "source": marker_source(),
            **more,
        }


@cache
def marker_source() -> str:
    """Return the C text of the marker program."""
    return files("tetraspark.ring.inside").joinpath("marker.c").read_text(encoding="utf-8")


def wanted(plan: RingPlan) -> tuple[NodeWanted, ...]:
    """Return what every node gets, in rank order."""
    return tuple(_of_node(plan, rank) for rank in range(len(plan.members)))


def rule_key(rule: RelayRule) -> str:
    """Return what a rule is called in a node's answers."""
    return f"rule {rule.netdev} {rule.preference}/{rule.handle}"


def _of_node(plan: RingPlan, rank: int) -> NodeWanted:
    member = plan.members[rank]
    node = plan.of(member.node)
    objects: list[Object] = []
    for one in member.functions:
        objects.append({"kind": "link", "dev": one.netdev, "mac": one.mac, "mtu": plan.mtu})
        objects.append({"kind": "address", "dev": one.netdev, "address": str(one.interface)})
    for need in node.requirements:
        objects.append({"kind": "steering", "pci": need.pci, "mode": need.steering})
        objects.append({"kind": "offload", "dev": need.netdev})
    objects += [{"kind": "qdisc", "dev": dev} for dev in node.clsact]
    objects += [_rule(one) for one in node.rules]
    for there in node.neighbours:
        place = {"dev": there.netdev, "address": str(there.address)}
        objects.append({"kind": "neighbour", **place, "mac": there.mac})
    for way in node.routes:
        ends = {"destination": str(way.destination), "source": str(way.source)}
        objects.append({"kind": "route", "dev": way.netdev, **ends})
    objects += [_marker(one) for one in node.markers]
    return NodeWanted(
        node=member.node,
        plan=plan.id,
        objects=tuple(objects),
        files=persistent_files(node),
        hairpin=tuple(
            {"netdev": one.netdev, "pci": one.pci, "queues": one.queues, "size": one.queue_size}
            for one in node.requirements
        ),
        addresses={one.rdma: str(one.address) for one in member.functions},
        devices=tuple(one.netdev for one in member.functions),
    )


def _rule(rule: RelayRule) -> Object:
    return {
        "kind": "rule",
        "dev": rule.netdev,
        "pref": rule.preference,
        "handle": rule.handle,
        "tag": rule.tag,
        "src_mac": rule.source_mac,
        "dst_mac": rule.destination_mac,
        "new_tag": rule.new_tag,
        "new_mac": rule.new_mac,
        "out": rule.redirect,
    }


def _marker(marker: Marker) -> Object:
    marks = sorted(f"{one.destination}={one.ethertype:#06x}" for one in marker.marks)
    digest = hashlib.sha256(marker_source().encode()).hexdigest()
    return {"kind": "marker", "device": marker.rdma, "marks": marks, "source": digest}
