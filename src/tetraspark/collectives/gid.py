"""The GIDs of an RDMA port, and the one a lane uses: found by address and type, not by index."""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

ROCE_V2 = "RoCE v2"
"""Text of `gid_attrs/types/N` in sysfs for the type that is routed over UDP."""

Address = IPv4Address | IPv6Address


@dataclass(frozen=True)
class Gid:
    """One entry of a port's table. `kind` and `netdev` are "" where the kernel shows none."""

    index: int
    value: IPv6Address
    kind: str
    netdev: str

    @property
    def address(self) -> Address:
        """The IP address that the GID stands for."""
        return self.value.ipv4_mapped or self.value

    @property
    def empty(self) -> bool:
        """Whether the entry is all zeros."""
        return not int(self.value)

    def describe(self) -> str:
        """Name the entry for a person."""
        kind = self.kind or "of no type"
        return f"{self.address} ({kind}, now at index {self.index})"


def parse_gid(text: str) -> IPv6Address:
    """Parse `gids/N` of sysfs: eight groups of four hex digits. Raises ValueError."""
    groups = text.strip().split(":")
    if len(groups) != 8 or any(len(group) != 4 for group in groups):
        raise ValueError(f"not a GID: {text!r}")
    return IPv6Address(int("".join(groups), 16))


def parse_address(text: str) -> Address:
    """Parse an address of a site file. Raises ValueError."""
    return ip_address(text)


def gid_of(address: Address) -> bytes:
    """Return the 16 bytes of the GID that stands for an address."""
    return address.packed if address.version == 6 else bytes(10) + b"\xff\xff" + address.packed


def usable(gids: Sequence[Gid]) -> list[Gid]:
    """Return the entries that a lane may use: RoCE v2, not empty, not link-local."""
    return [
        gid
        for gid in gids
        if gid.kind == ROCE_V2 and not gid.empty and not gid.address.is_link_local
    ]


def choose_gid(gids: Sequence[Gid], address: Address | None) -> Gid:
    """Return the entry of `address`, or the only usable one where `address` is None.

    A lookup for this moment: the kernel moves entries when addresses come and go. Raises
    ValueError with two arguments, what was seen and what was wanted.
    """
    found = usable(gids)
    if address is not None:
        match = [gid for gid in found if gid.address == address]
        if match:
            return match[0]
        raise ValueError(_seen(gids, address), f"a {ROCE_V2} GID of {address}")
    if len(found) == 1:
        return found[0]
    if not found:
        raise ValueError(_seen(gids, None), f"a {ROCE_V2} GID of an address that is not link-local")
    listed = ", ".join(str(gid.address) for gid in found)
    raise ValueError(f"{len(found)} usable GIDs: {listed}", "the site to name one of the addresses")


def _seen(gids: Sequence[Gid], address: Address | None) -> str:
    """Say why nothing fits: the entries of the address, else of the whole table."""
    filled = [gid for gid in gids if not gid.empty]
    here = [gid for gid in filled if gid.address == address]
    if not filled:
        return "no GID: every entry is empty"
    return "only " + ", ".join(gid.describe() for gid in here or filled)
