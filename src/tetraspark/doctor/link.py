"""Links of the NICs: PCIe and cable, the two halves of one cage, and MTU on both ends."""

from collections.abc import Iterator, Mapping

from tetraspark.doctor.finding import Finding
from tetraspark.doctor.node_view import NodeView
from tetraspark.doctor.rdma import each_device
from tetraspark.fabric.function import Function

PCIE_GTS = 32.0
PCIE_LANES = 4
"""A ConnectX-7 function of a Spark: PCIe 5.0 x4 (LnkCap of the device)."""
CABLE_MBPS = 200_000
PCIE = f"PCIe {PCIE_GTS:g} GT/s x{PCIE_LANES} for each function"
CABLE = f"a link of {CABLE_MBPS // 1000} Gb/s"
POWER = "switch the node off, unplug it for a minute; then look for firmware: sudo fwupdmgr update"


def _functions(view: NodeView) -> list[Function]:
    found = (view.fabric.function(name) for name in view.devices)
    return [one for one in found if one is not None]


def pcie(view: NodeView) -> Iterator[Finding]:
    """Judge speed and width of each function's PCIe link."""
    return each_device(view, PCIE, _pcie)


def _pcie(view: NodeView, one: Function) -> Finding:
    pci = one.pci
    if pci is None or pci.speed is None or pci.width is None:
        return Finding("unknown", f"{one.rdma}: not shown", PCIE, view.shell("sudo lspci -vv"))
    seen = f"{one.rdma} ({pci.address}): {pci.speed:g} GT/s x{pci.width}"
    if pci.speed < PCIE_GTS or pci.width < PCIE_LANES:
        return Finding("failed", f"{seen}, downgraded", PCIE, POWER)
    return Finding("ok", seen, PCIE)


def speed(view: NodeView) -> Iterator[Finding]:
    """Judge the speed of each function's cable."""
    return each_device(view, CABLE, _speed)


def _speed(view: NodeView, one: Function) -> Finding:
    if one.speed is None:
        fix = view.shell(f"ethtool {one.netdev}")
        return Finding("unknown", f"{one.rdma}: not shown", CABLE, fix)
    seen = f"{one.rdma}: {one.speed // 1000} Gb/s"
    if one.speed < CABLE_MBPS:
        fix = f"another cable or port of the switch; or {POWER}"
        return Finding("warning", seen, CABLE, fix)
    return Finding("ok", seen, CABLE)


def twins(view: NodeView) -> Iterator[Finding]:
    """Judge the two functions of each cage together: they share the cable."""
    wanted = "both functions of a cage up, or both down"
    cages = [cage for cage in view.fabric.twins() if any(one.rdma for one in cage)]
    if not cages:
        fix = "first what RDMA.DEVICE says"
        yield Finding("unknown", "no RDMA device to look at", wanted, fix)
    for cage in cages:
        seen = ", ".join(f"{one.label} {'up' if one.up else 'down'}" for one in cage)
        if len({one.up for one in cage}) > 1:
            down = next(one for one in cage if not one.up)
            fix = view.shell(f"sudo ip link set {down.netdev} up")
            yield Finding("failed", f"{seen}: one cable, one half dead", wanted, f"{fix}; {POWER}")
        else:
            yield Finding("ok", seen, wanted)


def mtu_everywhere(views: Mapping[str, NodeView]) -> Iterator[Finding]:
    """Compare the MTU of the fabric's network devices: both ends of a cable must have the same."""
    wanted = "the same MTU on both ends of every link"
    found = {
        f"{node} {one.netdev}": one.mtu for node, view in views.items() for one in _functions(view)
    }
    told = ", ".join(f"{where} {mtu}" for where, mtu in found.items())
    lacking = [node for node, view in views.items() if not _functions(view)]
    if len(set(found.values())) > 1:
        low = min(found, key=lambda where: found[where])
        fix = f"set {max(found.values())} everywhere; the smallest is that of {low}"
        yield Finding("failed", told, wanted, fix)
    elif lacking:
        seen = f"no device to look at on {', '.join(lacking)}"
        yield Finding("unknown", seen, wanted, "first what RDMA.DEVICE says")
    else:
        yield Finding("ok", f"{next(iter(found.values()), 'no device')} everywhere", wanted)
