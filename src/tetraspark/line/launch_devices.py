"""The RDMA devices of a node at launch: each one there, active, with one GID to use. Pure."""

from dataclasses import dataclass

from tetraspark.collectives.gid import ROCE_V2, Gid, usable
from tetraspark.errors import Problem
from tetraspark.fabric.function import Function, NodeFabric
from tetraspark.site.load import LoadedSite

ACTIVE = "ACTIVE"


@dataclass(frozen=True)
class DeviceGid:
    """The entry of a device's GID table for its own IPv4 address, at the moment of looking."""

    device: str
    index: int
    address: str

    def __str__(self) -> str:
        return f"{self.device} index {self.index} ({self.address})"


def devices_of(loaded: LoadedSite, rank: int) -> tuple[str, ...]:
    """Return the RDMA devices of one node."""
    fabric = loaded.site.fabric
    return loaded.site.nodes[rank].devices or (fabric.devices if fabric else ())


def device_gids(
    loaded: LoadedSite, rank: int, fabric: NodeFabric
) -> tuple[tuple[DeviceGid, ...], list[Problem]]:
    """Return the GID of each device of one node, and what is wrong with the others."""
    found, problems = [], []
    for device in devices_of(loaded, rank):
        function = next((one for one in fabric.functions if one.rdma == device), None)
        if function is None or not _active(function):
            problems.append(_not_active(loaded, rank, fabric, device, function))
            continue
        gids = _addressed(function)
        if len(gids) == 1:
            found.append(DeviceGid(device, gids[0].index, str(gids[0].address)))
        else:
            problems.append(_no_gid(fabric.node, function, gids))
    return tuple(found), problems


def shared_index(
    loaded: LoadedSite, rank: int, gids: tuple[DeviceGid, ...]
) -> tuple[int | None, list[Problem]]:
    """Return the index that all devices of a node have in common, or that there is none."""
    indices = {gid.index for gid in gids}
    if len(indices) == 1:
        return indices.pop(), []
    node = loaded.site.nodes[rank].name
    seen = f"GID indices differ: {', '.join(map(str, gids))}"
    wanted = "one index on every device: the collectives of recipe canary-roce take only one"
    fix = (
        "with the line stopped, take the address off the device that differs and add it again "
        '(sudo ip addr del, ip addr add), or set recipe = "canary"'
    )
    return None, [Problem(f"{node} GIDs", seen, wanted, fix)]


def _active(function: Function) -> bool:
    """Whether the port's state is ACTIVE, as sysfs (`4: ACTIVE`) or `rdma link` writes it."""
    return (function.state or "").rsplit(":", 1)[-1].strip().upper() == ACTIVE


def _addressed(function: Function) -> list[Gid]:
    """Return the usable entries of an IPv4 address that the port's own network device has."""
    own = {address.ip for address in function.addresses}
    return [gid for gid in usable(function.gids) if gid.address in own]


def _not_active(
    loaded: LoadedSite, rank: int, fabric: NodeFabric, device: str, function: Function | None
) -> Problem:
    active = [one.rdma for one in fabric.functions if one.rdma and _active(one)]
    seen = "no such RDMA device" if function is None else _state(fabric, function)
    key = f"nodes[{rank}].devices"
    names = ", ".join(f'"{name}"' for name in active)
    fix = f"check the cable; or set {key} = [{names}] in {loaded.path}"
    if not active:
        fix = f"check the cables and the driver on {fabric.node}: rdma link; ip -br link"
    there = ", ".join(active) or "none"
    wanted = f"a device that is {ACTIVE}; on {fabric.node}: {there}"
    return Problem(f"{fabric.node} {device}", seen, wanted, fix)


def _state(fabric: NodeFabric, function: Function) -> str:
    """Tell a port's state, and that of the other half of its cage, which shares the cable."""
    state = f"its port is {function.state}" if function.state else "its state cannot be seen"
    pci = function.pci
    for other in fabric.functions if pci else ():
        if other.pci and pci and other.pci.cage == pci.cage and other.pci.domain != pci.domain:
            alive = "ACTIVE" if _active(other) else other.state
            state += f" ({other.rdma}, on the same cable, is {alive})"
    return state


def _no_gid(node: str, function: Function, gids: list[Gid]) -> Problem:
    where = f"{node} {function.rdma}"
    wanted = f"one {ROCE_V2} GID of an IPv4 address of {function.netdev}, not link-local"
    if gids:
        listed = ", ".join(gid.describe() for gid in gids)
        fix = f"keep one address on {function.netdev}: NCCL would take whichever comes first"
        return Problem(where, f"{len(gids)} usable GIDs: {listed}", wanted, fix)
    others = ", ".join(gid.describe() for gid in usable(function.gids)) or "none"
    addresses = ", ".join(map(str, function.addresses)) or "no IPv4 address"
    seen = (
        f"no usable GID: {function.netdev} has {addresses}; usable entries in its table: {others}"
    )
    fix = f"give {function.netdev} an address that stays: netplan or nmcli; then ip -j addr"
    return Problem(where, seen, wanted, fix)
