"""What `ip -j` says: network devices with their addresses, neighbours, and routes."""

from dataclasses import dataclass
from ipaddress import IPv4Interface
from typing import Any

from tetraspark.fabric.function import Neighbour, Route
from tetraspark.fabric.inventory_json import mac, tables, whole, word

FOREVER = 0xFFFFFFFF
"""Lifetime of an address that does not expire."""
HARDWARE = ("", "veth")
"""Kinds of device that stand for a port; a device of a driver has none. Bridges, tunnels and the
like have another."""


@dataclass(frozen=True)
class Device:
    """A network device that may be a port: its own address, IPv4 addresses, and state.

    `temporary` are those of the addresses that expire.
    """

    name: str
    mac: str
    addresses: tuple[IPv4Interface, ...]
    up: bool
    carrier: bool
    mtu: int
    temporary: tuple[IPv4Interface, ...]


def devices(value: Any) -> dict[str, Device]:
    """Return the Ethernet devices of `ip -j -d addr` that may be ports, by name.

    A veth in a bridge leads to a container, so it is none.
    """
    found = {}
    for one in tables(value):
        kind = one.get("linkinfo")
        virtual = word(kind.get("info_kind")) if isinstance(kind, dict) else ""
        name = word(one.get("ifname"))
        if word(one.get("link_type")) != "ether" or virtual not in HARDWARE or not name:
            continue
        if virtual == "veth" and "master" in one:
            continue
        found[name] = _device(name, one)
    return found


def _device(name: str, one: dict[str, Any]) -> Device:
    flags = one.get("flags")
    words = flags if isinstance(flags, list) else []
    return Device(
        name=name,
        mac=mac(one.get("address")),
        addresses=tuple(
            address for info in tables(one.get("addr_info")) if (address := _address(info))
        ),
        up="UP" in words,
        carrier="LOWER_UP" in words,
        mtu=whole(one.get("mtu")) or 0,
        temporary=tuple(
            address
            for info in tables(one.get("addr_info"))
            if (address := _address(info)) and info.get("valid_life_time", FOREVER) != FOREVER
        ),
    )


def _address(info: dict[str, Any]) -> IPv4Interface | None:
    if info.get("family") != "inet":
        return None
    try:
        return IPv4Interface(f"{word(info.get('local'))}/{whole(info.get('prefixlen'))}")
    except ValueError:
        return None


def neighbours(value: Any) -> tuple[Neighbour, ...]:
    """Return the entries of `ip -j neigh`, of both families, that have an Ethernet address."""
    found = []
    for one in tables(value):
        states = one.get("state")
        state = " ".join(map(word, states)) if isinstance(states, list) else word(states)
        name, address, card = word(one.get("dev")), word(one.get("dst")), mac(one.get("lladdr"))
        if name and address and card:
            found.append(Neighbour(name, address, card, state))
    return tuple(found)


def routes(value: Any) -> tuple[Route, ...]:
    """Return the routes of `ip -j route` that name a device."""
    return tuple(
        Route(
            destination=word(one.get("dst")),
            netdev=word(one.get("dev")),
            gateway=word(one.get("gateway")) or None,
            source=word(one.get("prefsrc")) or None,
            protocol=word(one.get("protocol")),
        )
        for one in tables(value)
        if one.get("dst") and one.get("dev")
    )
