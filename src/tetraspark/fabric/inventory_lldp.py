"""What `lldpctl -f json` says: who sends from the other end of each cable."""

from typing import Any

from tetraspark.fabric.function import LldpPeer
from tetraspark.fabric.inventory_json import mac, table, tables, word

UNNAMED = ("id", "descr", "mgmt-ip", "capability")
"""What a chassis has below it directly when it tells no name of its own."""


def peers(value: Any) -> tuple[LldpPeer, ...]:
    """Return every neighbour heard, by device.

    lldpd writes one of a thing as an object and several as a list, for devices and neighbours
    alike; a chassis is below its name where it has one.
    """
    found = []
    for interfaces in tables(table(table(value).get("lldp")).get("interface")):
        for netdev, heard in interfaces.items():
            found += [_peer(netdev, one) for one in tables(heard)]
    return tuple(found)


def _peer(netdev: str, one: dict[str, Any]) -> LldpPeer:
    """Return one neighbour. Its card is the port's: a chassis has one for all of its ports."""
    chassis = table(one.get("chassis"))
    name, inside = next(iter(chassis.items()), ("", {}))
    if name in UNNAMED:
        name, inside = "", chassis
    system = name or next(iter(_identities(table(inside).get("id")).values()), "")
    port = table(one.get("port"))
    identities = _identities(port.get("id"))
    named = word(port.get("descr")) or identities.get("ifname", "") or identities.get("local", "")
    return LldpPeer(netdev, system, named, mac(identities.get("mac")))


def _identities(value: Any) -> dict[str, str]:
    return {word(one.get("type")): word(one.get("value")) for one in tables(value)}
