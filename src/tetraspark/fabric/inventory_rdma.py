"""What sysfs, `rdma -j link` and `ibv_devinfo` say of RDMA devices; port 1 alone, as on a NIC."""

import re
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

from tetraspark.collectives.gid import Gid, parse_gid
from tetraspark.collectives.port import PCI_ADDRESS
from tetraspark.fabric.function import Pci
from tetraspark.fabric.inventory_json import tables, whole, word

ROOT = "/sys/class/infiniband"
HEADERS = 96
"""Bytes that the kernel takes off a network MTU before it looks for the largest RDMA MTU that
fits: `iboe_get_mtu` in include/rdma/ib_addr.h, all headers a packet may have and its CRC."""
MTUS = (4096, 2048, 1024, 512, 256)
CACHED = "lifespan"
"""In `hw_counters`: no counter, but for how many milliseconds the others are kept as they are."""
NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")


def device_names(files: Mapping[str, str], links: Mapping[str, str]) -> list[str]:
    """Return the RDMA devices of a node, sorted."""
    start = f"{ROOT}/"
    paths = (path for path in (*files, *links) if path.startswith(start))
    return sorted({path[len(start) :].split("/", 1)[0] for path in paths})


def netdevs(links: Mapping[str, str], files: Mapping[str, str], said: Any) -> dict[str, str]:
    """Return the network device of each RDMA device.

    By `device/net` of sysfs, else by `rdma -j link`, else by the owner of its GIDs.
    """
    found: dict[str, str] = {}
    for path, owner in files.items():
        parts = path.split("/")
        if path.startswith(f"{ROOT}/") and "/gid_attrs/ndevs/" in path and owner.strip():
            found.setdefault(parts[4], owner.strip())
    for one in tables(said):
        name, netdev = word(one.get("ifname")), word(one.get("netdev"))
        if name and netdev:
            found[name] = netdev
    for path in sorted(links, reverse=True):
        parts = path.split("/")
        if path.startswith(f"{ROOT}/") and parts[5:7] == ["device", "net"] and len(parts) == 8:
            found[parts[4]] = parts[7]
    return found


def pci(device: str, links: Mapping[str, str], files: Mapping[str, str]) -> Pci | None:
    """Return where an RDMA device sits, or None for one that is not on PCI."""
    address = links.get(f"{ROOT}/{device}/device", "").rsplit("/", 1)[-1]
    if not PCI_ADDRESS.fullmatch(address):
        return None

    def number(name: str) -> float | None:
        match = NUMBER.match(files.get(f"{ROOT}/{device}/device/{name}", ""))
        found = float(match[0]) if match else None
        return found if found is not None and isfinite(found) else None

    width, widest = number("current_link_width"), number("max_link_width")
    return Pci(
        address=address,
        speed=number("current_link_speed"),
        width=None if width is None else int(width),
        max_speed=number("max_link_speed"),
        max_width=None if widest is None else int(widest),
    )


def attribute(device: str, name: str, files: Mapping[str, str]) -> str | None:
    """Return one file of the port, such as `state`, without the number before its word."""
    text = files.get(f"{ROOT}/{device}/ports/1/{name}")
    return None if text is None else text.strip().rpartition(": ")[2] or None


def gids(device: str, files: Mapping[str, str]) -> tuple[Gid, ...]:
    """Return the filled entries of a port's table, by index. A damaged one is left out."""
    port = f"{ROOT}/{device}/ports/1"
    found = []
    for index, text in _numbered(f"{port}/gids/", files):
        try:
            value = parse_gid(text)
        except ValueError:
            continue
        if int(value):
            kind = files.get(f"{port}/gid_attrs/types/{index}", "").strip()
            netdev = files.get(f"{port}/gid_attrs/ndevs/{index}", "").strip()
            found.append(Gid(index, value, kind, netdev))
    return tuple(sorted(found, key=lambda gid: gid.index))


def _numbered(start: str, files: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    for path, text in files.items():
        index = whole(path[len(start) :]) if path.startswith(start) else None
        if index is not None:
            yield index, text


def counters(device: str, files: Mapping[str, str]) -> dict[str, int]:
    """Return the counters of a port by name; those of `hw_counters` do not share names."""
    found = {}
    for folder in ("counters", "hw_counters"):
        start = f"{ROOT}/{device}/ports/1/{folder}/"
        for path, text in files.items():
            value = whole(text) if path.startswith(start) else None
            name = path[len(start) :]
            if value is not None and name != CACHED:
                found[name] = value
    return found


def active_mtus(text: str | None) -> dict[str, int]:
    """Return the active MTU of the first port of each device, from `ibv_devinfo`."""
    found: dict[str, int] = {}
    device = ""
    for line in (text or "").splitlines():
        name, _, value = (part.strip() for part in line.partition(":"))
        if name == "hca_id":
            device = value
        elif name == "active_mtu" and device:
            mtu = whole(value.split(" ", 1)[0])
            if mtu in MTUS:
                found.setdefault(device, mtu)
    return found


def derived_mtu(mtu: int) -> int | None:
    """Return the RDMA MTU that a port comes up with over a network MTU, or None if none fits."""
    return next((one for one in MTUS if one <= mtu - HEADERS), None)
