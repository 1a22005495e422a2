"""Whether a text is an address other machines can reach, and what it is when it is not."""

import ipaddress
import re
from dataclasses import dataclass

_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_HOST_PORT = re.compile(r"(?P<host>[^:\s\[\]]+|\[[^\]]+\]):(?P<port>\d*)")
_NUMERIC = re.compile(r"\d+|0[xX][0-9A-Fa-f]+")
_ADDRESS = "an IPv4 address such as 10.0.0.1, or a host name"


@dataclass(frozen=True)
class HostFault:
    """Why a host is refused: the three texts of a Problem."""

    seen: str
    wanted: str
    fix: str


def host_fault(text: str) -> HostFault | None:
    """Return why `text` cannot be a host, or None for an IPv4 address or a host name."""
    if not text.strip() or text != text.strip() or any(c.isspace() for c in text):
        return HostFault(f"host {text!r}", _ADDRESS, "write one host, without spaces")
    if "/" in text or "@" in text:
        fix = "write the host alone; a user goes in `user`, a port in its own key"
        return HostFault(f"host {text!r}", _ADDRESS, fix)
    if (version6 := _ipv6_kind(text)) is not None:
        wanted = "an IPv4 address or a host name: RoCE rails are IPv4 only here"
        return HostFault(f"host {text!r}, {version6}", wanted, "use the node's IPv4 address")
    if (match := _HOST_PORT.fullmatch(text)) is not None:
        fix = f'host = "{match["host"]}"; ports are `engine.dist_port` and `api.port`'
        return HostFault(f"host {text!r} carries a port", _ADDRESS, fix)
    return _name_fault(text)


def unreachable(text: str) -> str | None:
    """Name the kind of an address that only its own machine can use, or return None."""
    name = text.rstrip(".").lower()
    if name in ("localhost", "localhost.localdomain") or name.endswith(".localhost"):
        return "a loopback name"
    try:
        address = ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None
    return _address_kind(address)


def _address_kind(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str | None:
    mapped = getattr(address, "ipv4_mapped", None)
    address = mapped if mapped is not None else address
    if address.is_unspecified:
        return "the unspecified address"
    if address.is_loopback:
        return "a loopback address"
    if address.is_link_local:
        return "a link-local address"
    if address.is_multicast or str(address) == "255.255.255.255":
        return "a multicast or broadcast address"
    return None


def _ipv6_kind(text: str) -> str | None:
    bare = text[1:].split("]", 1)[0] if text.startswith("[") else text
    try:
        address = ipaddress.IPv6Address(bare)
    except ValueError:
        return "written like IPv6" if bare.count(":") > 1 or text.startswith("[") else None
    kind = _address_kind(address)
    return f"{kind} in IPv6" if kind else "an IPv6 address"


def _name_fault(text: str) -> HostFault | None:
    labels = text.rstrip(".").split(".")
    if text.isdigit():
        fix = "write all four numbers of the address, or the host name"
        return HostFault(f"host {text!r} is digits only", _ADDRESS, fix)
    if _NUMERIC.fullmatch(labels[-1]):
        try:
            ipaddress.IPv4Address(text)
        except ValueError:
            fix = "write four decimal numbers from 0 to 255, without leading zeros"
            return HostFault(f"host {text!r} is not a whole IPv4 address", _ADDRESS, fix)
        return None
    if len(text) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        fix = "letters, digits, `-` and `.` only; a name cannot begin with `-`"
        return HostFault(f"host {text!r}", _ADDRESS, fix)
    return None
