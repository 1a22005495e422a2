"""The fabric of a node, from facts that a read-only probe found: what to ask, how to read it."""

from collections.abc import Iterable, Mapping

from tetraspark.fabric import inventory_ethtool as ethtool
from tetraspark.fabric import inventory_rdma as rdma
from tetraspark.fabric.function import Function, NodeFabric
from tetraspark.fabric.hairpin import Hairpin
from tetraspark.fabric.inventory_devlink import hairpins
from tetraspark.fabric.inventory_ip import Device, devices, neighbours, routes
from tetraspark.fabric.inventory_json import answer, parsed, whole
from tetraspark.fabric.inventory_lldp import peers
from tetraspark.fabric.inventory_tc import rules, text_rules
from tetraspark.fabric.tc_rule import TcRule
from tetraspark.fleet.facts import Facts, Wanted

HOST_NAME = "/proc/sys/kernel/hostname"
FORWARDING = "/proc/sys/net/ipv4/ip_forward"
LEFTOVERS = "/etc/netplan/90-NM-*.yaml"
NET = "/sys/class/net"
_PORT = f"{rdma.ROOT}/*/ports/1"
SPARK_NETDEVS = ("enp1s0f0np0", "enP2p1s0f0np0", "enp1s0f1np1", "enP2p1s0f1np1")
"""The four functions of a DGX Spark's NIC, as DGX OS names them."""


def commands_of(netdevs: Iterable[str]) -> Wanted:
    """Return what must be asked device by device."""
    commands: dict[str, tuple[str, ...]] = {}
    for one in netdevs:
        commands[f"offload {one}"] = ("ethtool", "-k", one)
        commands[f"statistics {one}"] = ("ethtool", "-S", one)
        commands[f"rules {one}"] = ("tc", "-j", "-s", "filter", "show", "dev", one, "ingress")
    return Wanted(commands=commands)


WANTED = commands_of(SPARK_NETDEVS) | Wanted(
    files=(
        HOST_NAME,
        FORWARDING,
        f"{NET}/*/speed",
        f"{rdma.ROOT}/*/fw_ver",
        *(f"{rdma.ROOT}/*/device/{end}_link_{what}"
          for end in ("current", "max") for what in ("speed", "width")),
        *(f"{_PORT}/{name}" for name in ("state", "phys_state", "rate")),
        *(f"{_PORT}/{name}/*" for name in ("gids", "gid_attrs/types", "gid_attrs/ndevs")),
        *(f"{_PORT}/{name}/*" for name in ("counters", "hw_counters")),
    ),
    sizes=(LEFTOVERS,),
    links=(f"{rdma.ROOT}/*/device", f"{rdma.ROOT}/*/device/net/*"),
    commands={
        "addresses": ("ip", "-j", "-d", "addr", "show"),
        "neighbours": ("ip", "-j", "neigh", "show"),
        "routes": ("ip", "-j", "route", "show"),
        "rdma link": ("rdma", "-j", "link", "show"),
        "rdma devices": ("ibv_devinfo",),
        "lldp": ("lldpctl", "-f", "json"),
        "devlink parameters": ("devlink", "-j", "dev", "param", "show"),
        "devlink statistics": ("devlink", "-j", "-s", "dev", "show"),
    },
)  # fmt: skip
"""All that `read_fabric` reads, for devices with the names they have on a Spark."""


def unasked(facts: Facts) -> Wanted | None:
    """Return what a second probe must ask where RDMA devices have other names than a Spark's.

    `fabric.survey.look` puts the two into one; None where nothing is left to ask.
    """
    found = set(rdma.netdevs(facts.links, facts.files, parsed(answer(facts, "rdma link"))).values())
    left = sorted(one for one in found if f"rules {one}" not in facts.commands)
    return commands_of(left) if left else None


def read_fabric(facts: Facts) -> NodeFabric:
    """Return the fabric as a node shows it; what cannot be parsed is absent. Never raises."""
    cards = devices(parsed(answer(facts, "addresses")))
    by_netdev = {
        netdev: device
        for device, netdev in rdma.netdevs(
            facts.links, facts.files, parsed(answer(facts, "rdma link"))
        ).items()
    }
    settings = hairpins(
        parsed(answer(facts, "devlink parameters")), parsed(answer(facts, "devlink statistics"))
    )
    mtus = rdma.active_mtus(answer(facts, "rdma devices"))
    functions = tuple(
        _function(facts, card, by_netdev.get(card.name), settings, mtus)
        for card in _in_order(facts, cards, by_netdev)
    )
    return NodeFabric(
        node=facts.node,
        functions=functions,
        neighbours=neighbours(parsed(answer(facts, "neighbours"))),
        lldp=peers(parsed(answer(facts, "lldp"))),
        routes=routes(parsed(answer(facts, "routes"))),
        management=_management(facts.ssh, cards),
        host=facts.files.get(HOST_NAME, "").strip(),
        seen=_seen(facts),
        leftovers=facts.globs.get(LEFTOVERS, ()),
        forwarding={"0": False, "1": True}.get(facts.files.get(FORWARDING, "").strip()),
    )


def _in_order(
    facts: Facts, cards: Mapping[str, Device], by_netdev: Mapping[str, str]
) -> list[Device]:
    """Order devices by cage, then PCI domain, then name; those without RDMA come last."""

    def place(card: Device) -> tuple[bool, int, int, str]:
        device = by_netdev.get(card.name)
        pci = rdma.pci(device, facts.links, facts.files) if device else None
        return (device is None, pci.cage if pci else 0, pci.domain if pci else 0, card.name)

    return sorted(cards.values(), key=place)


def _function(
    facts: Facts,
    card: Device,
    device: str | None,
    settings: Mapping[str, Hairpin],
    mtus: Mapping[str, int],
) -> Function:
    files = facts.files
    pci = rdma.pci(device, facts.links, files) if device else None
    seen_mtu = mtus.get(device) if device else None
    derived = rdma.derived_mtu(card.mtu) if device and seen_mtu is None else None
    return Function(
        netdev=card.name,
        rdma=device,
        pci=pci,
        mac=card.mac,
        addresses=card.addresses,
        up=card.up and card.carrier,
        mtu=card.mtu,
        speed=whole(files.get(f"{NET}/{card.name}/speed")) or None,
        state=rdma.attribute(device, "state", files) if device else None,
        active_mtu=seen_mtu or derived,
        gids=rdma.gids(device, files) if device else (),
        counters=rdma.counters(device, files) if device else {},
        tc_offload=ethtool.offload(answer(facts, f"offload {card.name}")),
        mtu_derived=derived is not None,
        carrier=card.carrier,
        physical_state=rdma.attribute(device, "phys_state", files) if device else None,
        rate=rdma.attribute(device, "rate", files) if device else None,
        firmware=files.get(f"{rdma.ROOT}/{device}/fw_ver", "").strip() or None,
        statistics=ethtool.statistics(answer(facts, f"statistics {card.name}")),
        hairpin=settings.get(pci.address) if pci else None,
        rules=_rules(facts, card.name),
        temporary=card.temporary,
    )


def _rules(facts: Facts, netdev: str) -> tuple[TcRule, ...]:
    text = answer(facts, f"rules {netdev}")
    value = parsed(text)
    return text_rules(netdev, text or "") if value is None else rules(netdev, value)


def _management(address: str, cards: Mapping[str, Device]) -> str | None:
    """Return the device with the address that ssh came in on."""
    holders = (
        name
        for name, card in cards.items()
        if address and address in (str(one.ip) for one in card.addresses)
    )
    return next(holders, None)


def _seen(facts: Facts) -> tuple[str, ...]:
    """Return what could be asked there and answered in its own form."""
    asked = {"lldp": "lldp", "neighbours": "neighbours", "devlink": "devlink parameters"}
    found = {what for what, name in asked.items() if parsed(answer(facts, name)) is not None}
    if any(name.startswith("rules ") and one.rc == 0 for name, one in facts.commands.items()):
        found.add("tc")
    return tuple(sorted(found))
