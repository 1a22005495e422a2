"""Send a frame along every path of a plan, as an RDMA NIC would, and see where it comes out."""

import json
import select
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from ipaddress import IPv4Address

from tests.ring.frames import ROCE_PORT, frame
from tests.ring.namespace_ring import NamespaceRing
from tests.ring.ring_node import RingNode
from tetraspark.ring.path import Path
from tetraspark.ring.plan import RingPlan
from tetraspark.ring.tag import IPV4

PATIENCE_S = 5.0
"""How long a frame may take that should come; a busy machine is slow to run the relays."""

GRACE_S = 0.2
"""How long is waited for frames that should not come."""

Marks = Mapping[str, Mapping[IPv4Address, int]]
"""EtherTypes by network device and destination."""


def lay_out(ring: NamespaceRing, plan: RingPlan) -> None:
    """Put a plan in effect: addresses, routes, neighbours; and rules, all in hardware."""
    for node, member, planned in zip(ring.nodes, plan.members, plan.nodes, strict=True):
        made = [f"addr add {one.interface} dev {one.netdev}" for one in member.functions]
        made += [" ".join(one.argv("replace")[1:]) for one in planned.routes]
        made += [" ".join(one.argv("replace")[1:]) for one in planned.neighbours]
        node.ip(*made)
        node.set_rules(planned.rules)


def clear(ring: NamespaceRing, plan: RingPlan) -> None:
    """Take the addresses away again, and with them what hangs on them."""
    for node, member in zip(ring.nodes, plan.members, strict=True):
        node.ip(*(f"{kind} flush dev {one.netdev}" for one in member.functions
                  for kind in ("addr", "route", "neigh")))  # fmt: skip
        node.set_rules(())


def marks(plan: RingPlan, rank: int) -> Marks:
    """Return what a rank's markers do."""
    return {
        one.netdev: {mark.destination: mark.ethertype for mark in one.marks}
        for one in plan.nodes[rank].markers
    }


def resolve(node: RingNode, paths: Sequence[Path]) -> dict[str, tuple[str, str]]:
    """Return by name of path the device and card that a node's kernel resolves its target to."""
    ask(node, [path for path in paths if not path.relays])
    cards = {
        (one["dev"], one["dst"]): one["lladdr"]
        for one in json.loads(node.run("ip", "-j", "-4", "neigh").stdout)
        if "lladdr" in one
    }
    found = {}
    for path in paths:
        target = str(path.target_address)
        get = ("ip", "-j", "route", "get", target, "from", str(path.address))
        said = node.run(*get, check=False)
        for route in json.loads(said.stdout) if said.returncode == 0 else ():
            hop = (route["dev"], route.get("gateway", target))
            if hop in cards:
                found[name(path)] = (route["dev"], cards[hop])
    return found


def ask(node: RingNode, direct: Sequence[Path]) -> None:
    """Make the kernel ask on the cables who has these addresses; it is answered at once."""
    for path in direct:
        with node.open(socket.AF_INET, socket.SOCK_DGRAM) as made:
            made.bind((str(path.address), 0))
            made.sendto(b"", (str(path.target_address), 9))
    time.sleep(0.05 if direct else 0)


def deliver(
    ring: NamespaceRing, plan: RingPlan, paths: Sequence[Path], expected: Iterable[Path]
) -> set[str]:
    """Send a frame over each path; return the names of those that came to the target's address.

    Waits for those that are expected, and then a moment for others.
    """
    missing = {(one.target_address, one.address, name(one)) for one in paths}
    wanted = {(one.target_address, one.address, name(one)) for one in expected}
    with ExitStack() as stack:
        ends: dict[socket.socket, IPv4Address] = {}
        places = {(one.target, one.target_netdev, one.target_address) for one in paths}
        for target, netdev, address in places:
            made = ring[target].open(socket.AF_INET, socket.SOCK_DGRAM)
            stack.enter_context(made)
            # An RDMA device takes frames for its own address alone; Linux takes them anywhere.
            made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, netdev.encode())
            made.bind((str(address), ROCE_PORT))
            ends[made] = address
        for node in ring.nodes:
            send(node, plan, [path for path in paths if path.source == node.rank])
        while missing:
            patience = PATIENCE_S if missing & wanted else GRACE_S
            ready, _, _ = select.select(list(ends), [], [], patience)
            for made in ready:
                payload, came = made.recvfrom(9000)
                missing.discard((ends[made], IPv4Address(came[0]), payload.decode()))
            if not ready:
                break
    return names(paths) - {lost for _, _, lost in missing}


def send(node: RingNode, plan: RingPlan, paths: Sequence[Path]) -> None:
    """Resolve as the node does, mark as its markers do, and send; nothing where it cannot."""
    marked = marks(plan, node.rank)
    resolved = resolve(node, paths)
    for path in paths:
        if name(path) in resolved:
            device, hop = resolved[name(path)]
            kind = marked.get(device, {}).get(path.target_address, IPV4)
            own = plan.members[path.source].function(device).mac
            ends = (path.address, path.target_address)
            node.send(device, frame(hop, own, kind, *ends, name(path).encode()))


def name(path: Path) -> str:
    """Return a name that no other path has; it is also what its frames carry."""
    return f"{'-'.join(map(str, path.ranks))} lane {path.lane}"


def names(paths: Iterable[Path]) -> set[str]:
    """Return the names of paths."""
    return {name(path) for path in paths}
