"""Checks of the two ends of every cable: MTU, and the RDMA devices that the site names."""

from collections.abc import Iterator, Mapping

from tetraspark.doctor.check import Check
from tetraspark.fabric.cabling import Cabling
from tetraspark.fabric.cabling_checks import SHOW
from tetraspark.fabric.cabling_wire import Cage
from tetraspark.fabric.function import Function, NodeFabric

MTU = 9000
"""What both ends of a cable get: RDMA's largest packet, 4096 bytes, with its headers and room."""


def cable_checks(
    cabling: Cabling,
    fabrics: Mapping[str, NodeFabric],
    devices: Mapping[str, tuple[str, ...]],
) -> list[Check]:
    """Return the checks of cable ends; `devices` are RDMA devices by node, as the site has them."""
    return [_mtu(cabling), *_devices(cabling, devices), *_lasting(fabrics), _leftovers(fabrics)]


def _lines(cabling: Cabling) -> Iterator[tuple[tuple[Cage, Function], tuple[Cage, Function]]]:
    """Return the functions that share a subnet over a segment, two and two."""
    for segment in cabling.segments:
        held = [(cage, one) for cage in segment.ends for one in cabling.cages.get(cage, ())]
        for number, (cage, one) in enumerate(held):
            for far, other in held[number + 1 :]:
                if cage.node != far.node and _subnets(one) & _subnets(other):
                    yield (cage, one), (far, other)


def _subnets(one: Function) -> set[str]:
    return {str(address.network) for address in one.addresses}


def _mtu(cabling: Cabling) -> Check:
    """Unequal ends lose the larger frames without a word; 1500 leaves RDMA 1024."""
    wanted = f"MTU {MTU} at both ends"
    lines = list(_lines(cabling))
    if not lines:
        seen = "no two functions with a subnet in common"
        return Check("CABLING.MTU", None, "unknown", seen, wanted, SHOW)
    odd = [(a, b) for a, b in lines if a[1].mtu != b[1].mtu or a[1].mtu < MTU]
    if not odd:
        sizes = sorted({one.mtu for line in lines for _, one in line})
        return Check("CABLING.MTU", None, "ok", f"MTU {', '.join(map(str, sizes))}", wanted)
    low = {(cage.node, one.netdev, one.mtu) for line in odd for cage, one in line if one.mtu != MTU}
    seen = "; ".join(f"{node} {netdev} has {mtu}" for node, netdev, mtu in sorted(low))
    fix = "mtu: 9000 in the files of /etc/netplan on both nodes, then: sudo netplan apply"
    return Check("CABLING.MTU", None, "failed", seen, wanted, fix)


def _devices(cabling: Cabling, devices: Mapping[str, tuple[str, ...]]) -> list[Check]:
    """One device of each PCI domain does not reach both neighbours of a ring.

    Each cable needs two chosen functions that share a subnet, one at either end.
    """
    wanted = "over every cable, a device of the site at either end in one subnet"
    found = []
    for segment in (one for one in cabling.segments if one.cable):
        ends = [
            [one for one in cabling.cages.get(cage, ()) if one.rdma in devices.get(cage.node, ())]
            for cage in segment.ends
        ]
        subnets = [{name for one in end for name in _subnets(one)} for end in ends]
        if subnets[0] & subnets[1]:
            continue
        chosen = " and ".join(
            f"{cage.node} has {', '.join(str(one.rdma) for one in end) or 'none'} there"
            for cage, end in zip(segment.ends, ends, strict=True)
        )
        fix = "name all RDMA devices of the cables in `fabric.devices`, or in `devices` of a node"
        seen = f"{segment}: {chosen}"
        found.append(Check("CABLING.DEVICES", None, "failed", seen, wanted, fix))
    if not found and not any(one.cable for one in cabling.segments) and cabling.absent:
        return [Check("CABLING.DEVICES", None, "unknown", "no cable was seen", wanted, SHOW)]
    seen = "the site's devices meet over every cable"
    return found or [Check("CABLING.DEVICES", None, "ok", seen, wanted)]


def _lasting(fabrics: Mapping[str, NodeFabric]) -> list[Check]:
    """An address with an end is DHCP's or somebody's trial: NetworkManager takes it away."""
    wanted = "fabric addresses that do not expire"
    found = [
        Check(
            *("CABLING.LASTING", fabric.node, "failed"),
            observed=f"{one.netdev}: {', '.join(map(str, one.temporary))} will expire",
            wanted=wanted,
            fix=f"{one.netdev} in a file of /etc/netplan: addresses, dhcp4: false; netplan apply",
        )
        for fabric in fabrics.values()
        for one in fabric.ports
        if one.temporary
    ]
    return found or [Check("CABLING.LASTING", None, "ok", "none expires", wanted)]


def _leftovers(fabrics: Mapping[str, NodeFabric]) -> Check:
    """Files that NetworkManager wrote bring addresses back that were taken away."""
    wanted = "no file of netplan that NetworkManager wrote"
    left = [(fabric.node, path) for fabric in fabrics.values() for path in fabric.leftovers]
    if not left:
        return Check("CABLING.NETPLAN", None, "ok", "none", wanted)
    node, path = left[0]
    seen = "; ".join(f"{node} {path}" for node, path in left)
    fix = f"on {node}: sudo cat {path}; remove it if it names a fabric port"
    return Check("CABLING.NETPLAN", None, "warning", seen, wanted, fix)
