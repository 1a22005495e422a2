"""What the node is and what its counters say, for a receipt: runs inside the node."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tetraspark.ring.inside import journal as journals
from tetraspark.ring.inside.rule import RuleObject, packets
from tetraspark.ring.inside.say import run
from tetraspark.ring.inside.seen import Seen

INFINIBAND = Path("/sys/class/infiniband")
ICRC = "rx_icrc_encapsulated"


def identity(devices: list[str], rdma: list[str], seen: Seen) -> dict[str, Any]:
    """Return what a receipt is bound to: MAC addresses, firmware by RDMA device, kernel."""
    links = {dev: seen.link(dev) for dev in devices}
    return {
        "macs": {dev: one["address"] for dev, one in links.items() if one},
        "firmware": {one: _text(INFINIBAND / one / "fw_ver") for one in rdma},
        "kernel": os.uname().release,
    }


def gids(addresses: dict[str, str]) -> dict[str, int | None]:
    """Return the index of each RDMA device's RoCE v2 GID of an address, None where there is none.

    `addresses` are by RDMA device. Indices move when links flap, so nothing keeps them.
    """
    return {rdma: _index(INFINIBAND / rdma / "ports/1", one) for rdma, one in addresses.items()}


def _index(port: Path, address: str) -> int | None:
    low, high = (
        f"{a:02x}{b:02x}" for a, b in (map(int, address.split(".")[i : i + 2]) for i in (0, 2))
    )
    wanted = f"0000:0000:0000:0000:0000:ffff:{low}:{high}"
    for path in sorted(port.glob("gids/*"), key=lambda one: int(one.name)):
        kind = _text(port / "gid_attrs/types" / path.name)
        if _text(path) == wanted and kind == "RoCE v2":
            return int(path.name)
    return None


def counters(rules: list[RuleObject], rdma: list[str]) -> dict[str, Any]:
    """Return packets by rule, packets the kernel forwarded, and ICRC errors by RDMA device.

    A counter that cannot be read is None.
    """
    seen = Seen()
    errors = {one: _number(_text(INFINIBAND / one / "ports/1/hw_counters" / ICRC)) for one in rdma}
    return {
        "rules": {one.key: packets(one, seen) for one in rules},
        "forwarded": _forwarded(Path("/proc/net/snmp").read_text()),
        "icrc": errors,
    }


def surroundings() -> dict[str, Any]:
    """Return what decides whether TCP crosses a node: nothing of it touches RDMA."""
    policy = run(["iptables", "-S", "FORWARD"])
    lines = policy.out.splitlines()
    return {
        "ip_forward": _text(Path("/proc/sys/net/ipv4/ip_forward")),
        "forward_policy": lines[0].split()[-1] if policy.rc == 0 and lines else None,
        "boot": journals.boot_id(),
    }


def _forwarded(text: str) -> int:
    """Return ForwDatagrams of /proc/net/snmp."""
    names, values = [line.split() for line in text.splitlines() if line.startswith("Ip:")][:2]
    return int(values[names.index("ForwDatagrams")])


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
