"""The VM's network as the collectives see it, and ways to break it. Used inside the VM."""

import subprocess
from functools import partial

from tests.collectives.ranks import MakeTransport
from tests.rdma.topology import Topology, plan_of_ring, ring, switch
from tetraspark.collectives.local_lane import Choice
from tetraspark.collectives.verbs import VerbsTransport
from tetraspark.collectives.verbs_options import VerbsOptions
from tetraspark.collectives.wiring import Wiring
from tetraspark.ring.lanes import wiring

SWITCH = switch(4, 2)
RING = ring(4, 2)


def choice(topology: Topology, name: str) -> Choice:
    """Name a device with the address it must have."""
    return Choice.parse(f"{name}@{topology.by_name[name].address}")


def switch_wiring(world: int, rails: int) -> Wiring:
    """Wire the first `world` nodes and `rails` rails of a switched network, however large."""
    network = switch(world, rails)
    devices = [
        [choice(network, f"n{node}r{rail}") for rail in range(rails)] for node in range(world)
    ]
    return Wiring.uniform([f"node{node}" for node in range(world)], devices)


def wiring_of_ring() -> Wiring:
    """Wire four nodes in a ring, two cables from each to the next, as they are planned."""
    return wiring(plan_of_ring(4, 2))


def over(wiring: Wiring, options: VerbsOptions | None = None) -> MakeTransport:
    """Return what makes a rank's transport."""
    return partial(VerbsTransport, wiring=wiring, options=options)


def ip(*lines: str) -> None:
    """Run `ip` commands, one a line."""
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, check=True)


def down(port: str) -> None:
    """Set a port down, as its owner."""
    ip(f"link set {port} down")


def up(topology: Topology, port: str) -> None:
    """Set it up, with the routes and neighbours that the kernel forgot."""
    ip(f"link set {port} up", *topology.restore(port))


def unplug(topology: Topology, port: str) -> None:
    """Pull the cable: the port loses its carrier."""
    ip(f"link set {topology.by_name[port].far} down")


def plug(topology: Topology, port: str) -> None:
    """Put it back; in a ring the far end is a node's port, which has forgotten its routes."""
    far = topology.by_name[port].far
    ip(f"link set {far} up", *(topology.restore(far) if far in topology.by_name else ()))


def take_address(topology: Topology, port: str) -> None:
    """Remove the port's address."""
    one = topology.by_name[port]
    ip(f"addr del {one.address}/{one.prefix} dev {port}")


def give_address(topology: Topology, port: str) -> None:
    """Put it back; its GID comes back at another index."""
    one = topology.by_name[port]
    ip(f"addr add {one.address}/{one.prefix} dev {port}", *topology.restore(port))
