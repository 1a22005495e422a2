"""Which device NCCL uses for each link of its ring: a model of its subnet-aware selection. Pure.

A listener sends GIDs with its address. The connector keeps its own device when all ports of that
device share a subnet with one of them, else it takes the first device of which that is true; then
the acceptor does the same with the connector's GIDs. Nothing that fits leaves the device as it was.
Source: `src/transport/net_ib/connect.cc` of NCCL 2.30.7, and the published patches to it.

Two things are approximated: that channels take devices in turn, and that with NCCL_CROSS_NIC=1 a
channel receives on the device after the one it sends by.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from errno import ENODATA, ETIMEDOUT
from ipaddress import IPv4Network
from typing import Literal

from tetraspark.fabric.nccl_port import Port, RankPorts

Patch = Literal["stock", "advertise-2", "dual-pci"]
"""What a listener sends: the GIDs of its device; the first two of all; or up to four of all."""
Device = tuple[Port, ...]
HANDLE_GIDS = 2
EXTENDED_GIDS = 4


@dataclass(frozen=True)
class Selection:
    """What decides the selection: `merge` is NCCL_IB_MERGE_NICS (ports of a card are one device),
    `aware` NCCL_IB_SUBNET_AWARE_ROUTING, `cross` NCCL_CROSS_NIC=1.
    """

    merge: bool
    aware: bool
    patch: Patch = "stock"
    cross: bool = False
    channels: int = 4


@dataclass(frozen=True)
class Link:
    """What one channel uses between a rank and the next one; `errno` says why it cannot."""

    channel: int
    sender: str
    receiver: str
    out: Device
    into: Device
    errno: int | None

    def __str__(self) -> str:
        ends = (
            f"{node} {'+'.join(port.device for port in device)}"
            for node, device in ((self.sender, self.out), (self.receiver, self.into))
        )
        return " -> ".join(ends)


@dataclass(frozen=True)
class Routes:
    """Every link of every channel."""

    links: tuple[Link, ...]

    @property
    def failed(self) -> tuple[Link, ...]:
        """The links that cannot be set up."""
        return tuple(link for link in self.links if link.errno is not None)

    @property
    def ok(self) -> bool:
        """Whether all of them can."""
        return bool(self.links) and not self.failed

    def carrying(self, node: str) -> tuple[str, ...]:
        """Return the devices of a node that carry something, in NCCL's order."""
        good = [link for link in self.links if link.errno is None]
        ports = {port for link in good if link.sender == node for port in link.out}
        ports |= {port for link in good if link.receiver == node for port in link.into}
        return tuple(port.device for port in sorted(ports, key=lambda one: (one.card, one.device)))


def routes(ranks: Sequence[RankPorts], selection: Selection) -> Routes:
    """Return what NCCL would use around a ring of ranks, each next to the one after it."""
    links = []
    for channel in range(selection.channels):
        for rank, near in enumerate(ranks):
            far = ranks[(rank + 1) % len(ranks)]
            if far is not near and near.ports and far.ports:
                links.append(_link(channel, near, far, selection))
    return Routes(tuple(links))


def _link(channel: int, near: RankPorts, far: RankPorts, selection: Selection) -> Link:
    default = _default(near, channel, selection)
    listening = _default(far, channel + selection.cross, selection)
    out, into = default, listening
    if selection.aware:
        offered = _offered(far, listening, selection)
        out = _chosen(_devices(near, selection.merge), default, offered, selection.patch)
        back = [port.subnet for port in out]
        into = _chosen(_devices(far, selection.merge), listening, back, selection.patch)
    return Link(channel, near.node, far.node, out, into, _errno(out, into))


def _devices(rank: RankPorts, merge: bool) -> list[Device]:
    """Return the devices in NCCL's order: the ports, then those it fuses of a card's ports."""
    single: list[Device] = [(port,) for port in rank.ports]
    return single + [one for one in _cards(rank) if len(one) > 1] if merge else single


def _cards(rank: RankPorts) -> list[Device]:
    cards = dict.fromkeys(port.card for port in rank.ports)
    return [tuple(port for port in rank.ports if port.card == card) for card in cards]


def _default(rank: RankPorts, channel: int, selection: Selection) -> Device:
    """Return the device that a channel has before anything is compared."""
    used = _cards(rank) if selection.merge else _devices(rank, merge=False)
    return used[channel % len(used)]


def _offered(rank: RankPorts, listening: Device, selection: Selection) -> list[IPv4Network | None]:
    """Return the subnets of the GIDs that a listener sends; a port without one sends zeroes."""
    if selection.patch == "stock":
        return [port.subnet for port in listening][:HANDLE_GIDS]
    devices = _devices(rank, selection.merge)
    every = [port.subnet for device in devices for port in device]
    # The ports of fused devices count again, so that with them even four ports are too many.
    fit = len(every) <= EXTENDED_GIDS and None not in every
    return every if selection.patch == "dual-pci" and fit else every[:HANDLE_GIDS]


def _chosen(
    devices: Sequence[Device],
    default: Device,
    offered: Sequence[IPv4Network | None],
    patch: Patch,
) -> Device:
    def fits(device: Device) -> bool:
        return all(port.subnet is not None and port.subnet in offered for port in device)

    if fits(default):
        return default
    if patch == "dual-pci":
        # NCCL_IB_PRESERVE_PCI_DOMAIN: another device of the same card first.
        cards = {port.card for port in default}
        for device in devices:
            if {port.card for port in device} == cards and fits(device):
                return device
    return next((device for device in devices if fits(device)), default)


def _errno(out: Device, into: Device) -> int | None:
    if any(port.subnet is None for port in (*out, *into)):
        return ENODATA
    if len(out) == len(into) and all(a.reaches(b) for a, b in zip(out, into, strict=True)):
        return None
    # The kernel takes the peer for a neighbour on that port, and nobody answers its ARP there.
    return ETIMEDOUT
