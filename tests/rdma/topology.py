"""The networks built inside the VM, as pure values: ports, wires, and the `ip` commands for them.

All nodes share one network namespace, since this kernel's soft RoCE knows no other. Each node
has a routing table of its own (100 + node), chosen by what a packet comes in on or is sent from,
so traffic between nodes crosses the wires and no node sees another's addresses as local.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from tetraspark.fabric.function import Function, Neighbour, NodeFabric, Pci
from tetraspark.ring.build import ring_plan
from tetraspark.ring.plan import RingPlan
from tetraspark.ring.walk import planned_wires

MTU = 9000
TABLE = 100


@dataclass(frozen=True)
class Port:
    """A network device and the RDMA device of the same name; `far` is the wire's other end."""

    node: int
    name: str
    address: str
    prefix: int
    mac: str
    far: str

    @property
    def network(self) -> str:
        """The subnet, for networks that begin at .0."""
        return f"{self.address.rpartition('.')[0]}.0/{self.prefix}"


@dataclass(frozen=True)
class Static:
    """A static entry: `port` reaches `address` at `mac`."""

    port: str
    address: str
    mac: str


@dataclass(frozen=True)
class Route:
    """A node reaches `address` out of `port` by way of `via`."""

    node: int
    port: str
    address: str
    via: str


@dataclass(frozen=True)
class Topology:
    """`name` is "switch" or "ring"; `bridges` are the switches, by the far ends they join."""

    name: str
    nodes: int
    ports: tuple[Port, ...]
    neighbours: tuple[Static, ...]
    routes: tuple[Route, ...]
    bridges: dict[str, tuple[str, ...]]

    @cached_property
    def by_name(self) -> dict[str, Port]:
        """Ports by name."""
        return {port.name: port for port in self.ports}

    def build(self) -> list[str]:
        """Return the `ip -batch` lines that make everything."""
        lines = [f"link add {bridge} mtu {MTU} type bridge" for bridge in self.bridges]
        made: set[str] = set()
        for port in self.ports:
            if port.name not in made:
                lines.append(
                    f"link add {port.name} mtu {MTU} type veth peer name {port.far} mtu {MTU}"
                )
                made |= {port.name, port.far}
        for bridge, ends in self.bridges.items():
            lines += [f"link set {end} master {bridge} up" for end in ends]
            lines.append(f"link set {bridge} up")
        for port in self.ports:
            lines.append(f"link set dev {port.name} address {port.mac}")
            lines.append(f"addr add {port.address}/{port.prefix} dev {port.name}")
            lines.append(f"link set dev {port.name} up")
        for port in self.ports:
            lines += self.restore(port.name)
            lines.append(f"rule add pref 10 iif lo from {port.address} lookup {TABLE + port.node}")
            lines.append(f"rule add pref 10 iif {port.name} lookup {TABLE + port.node}")
        return [*lines, "rule add pref 100 lookup local", "rule del pref 0"]

    def restore(self, name: str) -> list[str]:
        """Return the lines for what the kernel forgets when a port is set down."""
        port = self.by_name[name]
        table = TABLE + port.node
        lines = [
            f"route replace local {port.address} dev {name} table {table}",
            f"route replace {port.network} dev {name} src {port.address} table {table}",
        ]
        lines += [
            f"neigh replace {one.address} lladdr {one.mac} dev {name} nud permanent"
            for one in self.neighbours
            if one.port == name
        ]
        lines += [
            f"route replace {one.address}/32 via {one.via} dev {name} table {table}"
            for one in self.routes
            if one.port == name
        ]
        return lines


def _mac(kind: int, major: int, minor: int) -> str:
    return f"02:00:00:{kind:02x}:{major:02x}:{minor:02x}"


def switch(nodes: int = 4, rails: int = 2) -> Topology:
    """Return one switch a rail, every node on each: port `nNrR` is 10.10.R.(N+1)/24."""
    ports = tuple(
        Port(node, f"n{node}r{rail}", f"10.10.{rail}.{node + 1}", 24, _mac(1, rail, node), far)
        for rail in range(rails)
        for node in range(nodes)
        for far in [f"s{node}r{rail}"]
    )
    neighbours = tuple(
        Static(port.name, other.address, other.mac)
        for port in ports
        for other in ports
        if other.network == port.network and other is not port
    )
    bridges = {
        f"sw{rail}": tuple(f"s{node}r{rail}" for node in range(nodes)) for rail in range(rails)
    }
    return Topology("switch", nodes, ports, neighbours, (), bridges)


@cache
def plan_of_ring(nodes: int = 4, rails: int = 2) -> RingPlan:
    """Return the plan of a ring whose nodes have `rails` functions at each end of a cable.

    Port `nNrRa` leads to the next node, `nNrRb` to the previous one.
    """

    def function(node: int, cage: int, rail: int) -> Function:
        name = f"n{node}r{rail}{'ab'[cage]}"
        pci = Pci(f"{2 * rail:04x}:01:00.{cage}")
        blank: Any = {"addresses": (), "gids": (), "counters": {}, "speed": None, "state": None}
        card = _mac(2, node, 2 * rail + cage)
        return Function(name, name, pci, card, up=True, mtu=MTU, active_mtu=None, **blank)

    def fabric(node: int) -> NodeFabric:
        functions = tuple(function(node, cage, rail) for cage in (0, 1) for rail in range(rails))
        heard = tuple(
            Neighbour(function(node, cage, 0).netdev, "", function(far, 1 - cage, 0).mac, "STALE")
            for cage, far in ((0, (node + 1) % nodes), (1, (node - 1) % nodes))
        )
        return NodeFabric(f"node{node}", functions, heard)

    return ring_plan([fabric(node) for node in range(nodes)])


def ring(nodes: int = 4, rails: int = 2) -> Topology:
    """Return the ring that `tetraspark ring plan` makes of such nodes, all of it but the relays.

    No NIC is here to relay, so a route goes by way of the neighbour's address and kernels forward.
    """
    plan = plan_of_ring(nodes, rails)
    wires = planned_wires(plan)
    ports = tuple(
        Port(
            member.rank,
            one.netdev,
            str(one.address),
            one.interface.network.prefixlen,
            one.mac,
            wires[member.rank, one.netdev][1],
        )
        for member in plan.members
        for one in member.functions
    )
    by_name = {port.name: port for port in ports}
    neighbours = tuple(
        Static(port.name, by_name[port.far].address, by_name[port.far].mac) for port in ports
    )
    routes = tuple(
        Route(path.source, path.netdev, str(path.target_address), str(path.gateway))
        for path in plan.paths
        if path.relays
    )
    return Topology("ring", nodes, ports, neighbours, routes, {})


def parse_topology(text: str) -> Topology:
    """Parse `switch NODES RAILS` or `ring NODES RAILS`. Raises ValueError."""
    name, nodes, rails = text.split()
    return {"switch": switch, "ring": ring}[name](int(nodes), int(rails))
