"""The networks of the VM, as values."""

import pytest

from tests.rdma.topology import Topology, parse_topology, plan_of_ring, ring, switch
from tests.rdma.vm.kernel import cpio, depends


def hops(topology: Topology, source: int, address: str) -> list[int]:
    """Follow the routes from a node to an address; return the nodes on the way."""
    path = [source]
    owner = {port.address: port.node for port in topology.ports}
    while path[-1] != owner[address]:
        node = path[-1]
        via = [one.via for one in topology.routes if (one.node, one.address) == (node, address)]
        direct = [
            topology.by_name[port.far].node
            for port in topology.ports
            if port.node == node and topology.by_name[port.far].address == address
        ]
        assert len(via) + len(direct) == 1
        path.append(direct[0] if direct else owner[via[0]])
    return path


def test_a_switch_joins_every_node_on_every_rail() -> None:
    made = switch(4, 2)
    assert len(made.ports) == 8 and len(made.neighbours) == 2 * 4 * 3
    assert made.by_name["n2r1"].address == "10.10.1.3"
    assert made.bridges == {f"sw{r}": tuple(f"s{n}r{r}" for n in range(4)) for r in (0, 1)}


@pytest.mark.parametrize(("nodes", "rails"), [(3, 1), (4, 1), (4, 2), (5, 2)])
def test_the_routes_of_a_ring_are_the_paths_of_its_plan(nodes: int, rails: int) -> None:
    made, plan = ring(nodes, rails), plan_of_ring(nodes, rails)
    assert len(plan.paths) >= nodes * (nodes - 1) and plan.shape == "ring"
    for path in plan.paths:
        assert hops(made, path.source, str(path.target_address)) == list(path.ranks)


def test_addresses_and_cards_are_unique() -> None:
    for made in (switch(4, 2), ring(4, 2)):
        assert len({port.address for port in made.ports}) == len(made.ports)
        assert len({port.mac for port in made.ports}) == len(made.ports)


def test_what_a_port_loses_is_put_back_as_it_was_built() -> None:
    for made in (switch(4, 2), ring(4, 2)):
        lines = made.build()
        assert all(line in lines for port in made.ports for line in made.restore(port.name))


def test_topologies_are_parsed() -> None:
    assert parse_topology("ring 4 2") == ring(4, 2)
    with pytest.raises(KeyError):
        parse_topology("star 4 2")


def test_an_archive_is_padded_and_ends() -> None:
    made = cpio([("a", 0o100644, b"xyz")])
    assert made.startswith(b"070701") and made.endswith(b"TRAILER!!!\0\0\0\0")
    assert len(made) % 4 == 0 and b"a\0" in made and b"xyz\0" in made


def test_dependencies_of_a_module() -> None:
    text = b"\x7fELF\0license=GPL\0depends=ib_core,ip6-udp-tunnel\0name=x\0"
    assert list(depends(text)) == ["ib_core", "ip6_udp_tunnel"]
    assert list(depends(b"\0depends=\0")) == []
