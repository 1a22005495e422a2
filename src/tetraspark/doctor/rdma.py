"""RDMA devices of a node: those the site names, looked up on the node each time, no fallback."""

from collections.abc import Callable, Iterator

from tetraspark.collectives.gid import Gid, usable
from tetraspark.doctor.finding import Finding
from tetraspark.doctor.node_view import NodeView
from tetraspark.fabric.function import Function
from tetraspark.fleet.facts import Wanted

VERBS = Wanted(links=("/dev/infiniband/*",))
ACTIVE = "ACTIVE"


def verbs(view: NodeView) -> Iterator[Finding]:
    """Judge the device files that a container is given."""
    wanted = "/dev/infiniband/uverbs*, for `--device=/dev/infiniband`"
    found = [path.rsplit("/", 1)[-1] for path in view.facts.links if "/infiniband/" in path]
    names = [name for name in found if name.startswith("uverbs")]
    if names:
        yield Finding("ok", ", ".join(names), wanted)
    else:
        fix = view.shell("sudo modprobe ib_uverbs mlx5_ib && ls /dev/infiniband")
        yield Finding("failed", "no /dev/infiniband/uverbs*", wanted, fix)


def good_gids(function: Function) -> list[Gid]:
    """Return the entries a lane may use: RoCE v2, of an IPv4 address of the network device."""
    own = {interface.ip for interface in function.addresses}
    return [gid for gid in usable(function.gids) if gid.value.ipv4_mapped in own]


def is_active(function: Function) -> bool:
    """Tell whether the RDMA port is up; sysfs says `4: ACTIVE`."""
    return function.up and ACTIVE in (function.state or "")


def usable_devices(view: NodeView) -> str:
    """Name what could be used on this node: active devices with the indices of their GIDs."""
    found = [
        f"{one.rdma} (index {', '.join(str(gid.index) for gid in good_gids(one))})"
        for one in view.fabric.functions
        if one.rdma and is_active(one) and good_gids(one)
    ]
    return ", ".join(found) or "none"


def each_device(
    view: NodeView, wanted: str, judge: Callable[[NodeView, Function], Finding]
) -> Iterator[Finding]:
    """Judge the function of each device; one that is not there is unknown."""
    for device in view.devices:
        found = view.fabric.function(device)
        if found is None:
            fix = f"first what RDMA.DEVICE says of {device}"
            yield Finding("unknown", f"no device {device} to look at", wanted, fix)
        else:
            yield judge(view, found)


def device(view: NodeView) -> Iterator[Finding]:
    """Judge that each device of the site is one of this node's RDMA devices."""
    for name in view.devices:
        found = view.fabric.function(name)
        wanted = f"RDMA device {name} ({view.devices_key})"
        if found is not None and found.rdma == name:
            yield Finding("ok", f"{name} is {found.netdev}", wanted)
            continue
        seen = f"no RDMA device {name} on {view.node}; usable there: {usable_devices(view)}"
        yield Finding("failed", seen, wanted, _devices_fix(view))


def _devices_fix(view: NodeView) -> str:
    return (
        f"set `devices` of [[nodes]] {view.node} to what is usable there "
        f"({view.devices_key}); {view.shell('rdma link')}"
    )


def port(view: NodeView) -> Iterator[Finding]:
    """Judge the state of each device's port and of its network device."""
    return each_device(view, "an active port", _port)


def _port(view: NodeView, one: Function) -> Finding:
    wanted = f"port of {one.rdma} active, {one.netdev} up"
    link = "up" if one.up else "down"
    seen = f"{one.rdma} {one.state or 'of unknown state'}, {one.netdev} {link}"
    if one.state is None:
        return Finding("unknown", seen, wanted, view.shell("rdma link"))
    if is_active(one):
        return Finding("ok", seen, wanted)
    seen = f"{seen}; usable on {view.node}: {usable_devices(view)}"
    return Finding("failed", seen, wanted, f"plug the cable, or {_devices_fix(view)}")


def gid(view: NodeView) -> Iterator[Finding]:
    """Judge that each device has a RoCE v2 GID of an address of its own, at whatever index."""
    return each_device(view, "a RoCE v2 GID of an IPv4 address", _gid)


def _gid(view: NodeView, one: Function) -> Finding:
    wanted, found = f"a RoCE v2 GID of an IPv4 address of {one.netdev}", good_gids(one)
    if found:
        seen = f"{one.rdma}: " + ", ".join(f"index {gid.index} {gid.address}" for gid in found)
        return Finding("ok", seen, wanted)
    filled = "; ".join(gid.describe() for gid in one.gids if not gid.empty) or "all empty"
    addresses = ", ".join(map(str, one.addresses)) or "no IPv4 address"
    seen = f"{view.node} {one.rdma}: {filled}; {one.netdev} has {addresses}"
    fix = f"{view.shell(f'ip -4 addr show {one.netdev}')}; give it its address, or take it away"
    fix += " and add it again: the kernel then makes the GID anew"
    return Finding("failed", f"{seen}; usable: {usable_devices(view)}", wanted, fix)


def common_index(view: NodeView) -> Iterator[Finding]:
    """Judge whether one GID index fits all devices: some collectives take a single number."""
    wanted = "one GID index that all devices share"
    functions = [view.fabric.function(name) for name in view.devices]
    there = [one for one in functions if one is not None]
    indices = {str(one.rdma): {gid.index for gid in good_gids(one)} for one in there}
    told = ", ".join(f"{name} {sorted(found) or 'none'}" for name, found in indices.items())
    if len(there) < len(functions) or not all(indices.values()):
        fix = "first what RDMA.DEVICE and RDMA.GID say"
        yield Finding("unknown", told or "no device", wanted, fix)
        return
    common = set.intersection(*indices.values()) if indices else set()
    if common or not indices:
        yield Finding("ok", f"index {sorted(common)} ({told})", wanted)
    else:
        fix = "nothing for NCCL and tetraspark's own collectives, which look up each device; "
        fix += "collectives that take one index for all cannot be used"
        yield Finding("warning", told, wanted, fix)


def mtu(view: NodeView) -> Iterator[Finding]:
    """Judge the active RDMA MTU, which follows from the network device's."""
    return each_device(view, f"active RDMA MTU of at least {_least_mtu(view)}", _mtu)


def _least_mtu(view: NodeView) -> int:
    assert view.loaded.site.fabric is not None, "the schema asks it of a fleet"
    return view.loaded.site.fabric.min_rdma_mtu


def _mtu(view: NodeView, one: Function) -> Finding:
    least = _least_mtu(view)
    wanted = f"active RDMA MTU of at least {least}"
    if one.active_mtu is None:
        seen = f"{one.rdma}: not shown; netdev MTU is {one.mtu}"
        return Finding("unknown", seen, wanted, view.shell(f"ibv_devinfo -d {one.rdma}"))
    how = ", not shown but derived" if one.mtu_derived else ""
    if one.active_mtu < least:
        seen = f"{one.rdma}: {one.active_mtu}{how}; netdev MTU is {one.mtu} ({one.netdev})"
        fix = "set 9000 on both ends and on the switch: "
        fix += view.shell(f"sudo ip link set {one.netdev} mtu 9000")
        return Finding("failed", seen, wanted, fix)
    return Finding("ok", f"{one.rdma}: {one.active_mtu}{how}, netdev MTU {one.mtu}", wanted)
