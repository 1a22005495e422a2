"""A fabric as text: how the nodes are joined, and a row for every function."""

from dataclasses import dataclass
from itertools import pairwise

from tetraspark.fabric.cabling import Cabling, Segment
from tetraspark.fabric.cabling_wire import Cage
from tetraspark.fabric.function import Function
from tetraspark.fabric.inventory_file import Inventory

UNKNOWN = "?"
LINE = "──"


@dataclass(frozen=True)
class Row:
    """What is shown of one function. `far` is the other end of its cage's cable."""

    node: str
    port: str
    far: str
    netdev: str
    rdma: str
    link: str
    mtu: str
    addresses: str
    gid: str
    note: str


def joined(cabling: Cabling) -> list[str]:
    """Return lines that show the cables: one for a ring or a line, else one for each cable."""
    order = cabling.order
    if not order:
        return [_segment(one) for one in cabling.segments] + _loose(cabling)
    way = [*order, order[0]] if cabling.shape == "ring" else list(order)
    text = way[0]
    for node, after in pairwise(way):
        ends = cabling.cable(node, after)
        text += f" [{ends[0].number}]{LINE}[{ends[1].number}] {after}" if ends else ""
    return [text, *_loose(cabling)]


def _segment(one: Segment) -> str:
    if one.cable:
        first, second = one.ends
        return f"{first.node} [{first.number}]{LINE}[{second.number}] {second.node}"
    ends = ", ".join(f"{end.node} [{end.number}]" for end in one.ends)
    return f"{one.switch or 'a switch'} {LINE} {ends}"


def _loose(cabling: Cabling) -> list[str]:
    return [
        f"{cage.node} [{cage.number}]{LINE} {other_end(cabling, cage)}" for cage in cabling.silent
    ]


def other_end(cabling: Cabling, cage: Cage) -> str:
    """Name what is at the other end of a cage, `?` where a link is up and nothing shows it."""
    for one in cabling.segments:
        if cage in one.ends:
            others = [end for end in one.ends if end != cage]
            name = str(others[0]) if one.cable else (one.switch or "a switch")
            return name if one.on_the_wire else f"{name} (by address)"
    if cage in cabling.toward:
        return f"{cabling.toward[cage]} (not looked at)"
    return UNKNOWN if any(one.up for one in cabling.cages[cage]) else "-"


def rows(inventory: Inventory) -> list[Row]:
    """Return a row for every function, in rank order, both functions of a cage together."""
    cabling = inventory.cabling
    found = []
    for node in inventory.nodes:
        if node not in inventory.fabrics:
            found.append(_unseen(node, inventory.unseen.get(node, "not looked at")))
        for cage, twins in cabling.cages.items():
            if cage.node == node:
                far = other_end(cabling, cage)
                found += [_row(cage, far, one, twins) for one in twins]
    return found


def _unseen(node: str, why: str) -> Row:
    texts = dict.fromkeys(("port", "far", "netdev", "rdma", "link"), UNKNOWN)
    return Row(node, **texts, mtu=UNKNOWN, addresses=UNKNOWN, gid=UNKNOWN, note=why)


def _row(cage: Cage, far: str, one: Function, twins: tuple[Function, ...]) -> Row:
    speed = f" {one.speed // 1000}G" if one.up and one.speed else ""
    rdma_mtu = one.active_mtu or UNKNOWN
    return Row(
        node=cage.node,
        port=str(cage.number),
        far=far,
        netdev=one.netdev,
        rdma=one.rdma or "-",
        link=("up" if one.up else "down") + speed,
        mtu=f"{one.mtu}/{rdma_mtu}" + (" derived" if one.mtu_derived else ""),
        addresses=" ".join(map(str, one.addresses)) or "-",
        gid=gid_index(one),
        note=_note(one, twins),
    )


def gid_index(one: Function) -> str:
    """Return the index that the function's address has now, `-` without an address."""
    if not one.addresses or one.rdma is None:
        return "-"
    return str(one.gid.index) if one.gid else "none"


def _note(one: Function, twins: tuple[Function, ...]) -> str:
    """Say what is odd with a function: its link, its twin's, its bus."""
    notes = []
    if len({twin.up for twin in twins}) > 1:
        notes.append("its twin is " + ("down" if one.up else "up"))
    if one.pci and one.pci.width and one.pci.max_width and one.pci.width < one.pci.max_width:
        notes.append(f"PCIe x{one.pci.width} of x{one.pci.max_width}")
    if one.pci and one.pci.speed and one.pci.max_speed and one.pci.speed < one.pci.max_speed:
        notes.append(f"PCIe {one.pci.speed:g} of {one.pci.max_speed:g} GT/s")
    if one.state not in (None, "ACTIVE") and one.up:
        notes.append(f"RDMA port {one.state}")
    if rules := [rule for rule in one.rules if rule.redirect]:
        notes.append(f"{len(rules)} relay rule{'s' if len(rules) > 1 else ''}")
    return ", ".join(notes)
