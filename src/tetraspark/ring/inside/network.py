"""Links, addresses, routes and neighbours as objects of the ring: runs inside the node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tetraspark.ring.inside.kind import OWNER, Described, Look
from tetraspark.ring.inside.say import must
from tetraspark.ring.inside.seen import Seen

LEARNED = {"REACHABLE", "STALE", "DELAY", "PROBE", "FAILED", "INCOMPLETE", "NONE"}
"""States of a neighbour that the kernel found itself, and may forget."""
ANSWERS = {"REACHABLE", "DELAY", "PROBE"}


@dataclass(frozen=True)
class LinkObject(Described):
    """A device that must be up, with the MAC address it was planned with, and its MTU in bytes."""

    kind: ClassVar[str] = "link"

    dev: str
    mac: str
    mtu: int

    @property
    def key(self) -> str:
        """There is one device of a name."""
        return f"link {self.dev}"

    def look(self, seen: Seen) -> Look:
        """A device of another MAC address is another device; only the MTU can be set."""
        found = seen.link(self.dev)
        if found is None:
            return Look("no-link", "there is no such device")
        if found.get("address") != self.mac:
            return Look("different", f"MAC address {found.get('address')}, planned {self.mac}")
        if "UP" not in found["flags"] or "LOWER_UP" not in found["flags"]:
            return Look("no-link", f"state {found['operstate']}")
        if found["mtu"] != self.mtu:
            seen_mtu = str(found["mtu"])
            return Look(
                "different", f"MTU {seen_mtu}, planned {self.mtu}", settable=True, before=seen_mtu
            )
        return Look("present")

    def make(self) -> None:
        """Set the MTU."""
        must(["ip", "link", "set", "dev", self.dev, "mtu", str(self.mtu)])

    def unmake(self, before: str | None) -> None:
        """Set the MTU back."""
        if before is not None:
            must(["ip", "link", "set", "dev", self.dev, "mtu", before])


@dataclass(frozen=True)
class AddressObject(Described):
    """An IPv4 address with its prefix length on a device."""

    kind: ClassVar[str] = "address"

    dev: str
    address: str

    @property
    def key(self) -> str:
        """A device has an address once."""
        return f"address {self.dev} {self.address.split('/')[0]}"

    def look(self, seen: Seen) -> Look:
        """The same address with another prefix length is another network."""
        found = seen.addresses(self.dev)
        if self.address in found:
            return Look("present")
        same = [one for one in found if one.split("/")[0] == self.address.split("/")[0]]
        if same:
            return Look("different", f"{same[0]}, planned {self.address}")
        return Look("missing", f"has {', '.join(found) or 'none'}")

    def make(self) -> None:
        """Add the address."""
        must(["ip", "addr", "add", self.address, "dev", self.dev])

    def unmake(self, before: str | None) -> None:
        """Remove the address."""
        must(["ip", "addr", "del", self.address, "dev", self.dev])


@dataclass(frozen=True)
class RouteObject(Described):
    """A /32 route of the main table: the destination is taken for on-link, without a gateway."""

    kind: ClassVar[str] = "route"

    dev: str
    destination: str
    source: str

    @property
    def key(self) -> str:
        """The main table has one best route to a destination, over whatever device."""
        return f"route {self.destination}"

    def look(self, seen: Seen) -> Look:
        """Every route to that destination counts; the wanted one must be the only one."""
        found = [one for one in seen.routes() if one["dst"] == self.destination]
        if not found:
            return Look("missing")
        texts = [_route(one) for one in found]
        wanted = f"dev {self.dev} src {self.source}"
        marked = all(one.get("protocol") == OWNER for one in found)
        if texts == [wanted]:
            return Look("present", marked=marked)
        return Look("different", f"{' and '.join(texts)}, planned {wanted}", marked=marked)

    def make(self) -> None:
        """Put the route there, in place of one of ours that somebody bent."""
        # `replace` would leave a route of another metric beside it.
        if any(one["dst"] == self.destination for one in Seen().routes()):
            self.unmake(None)
        place = ["dev", self.dev, "scope", "link", "src", self.source]
        must(["ip", "route", "add", f"{self.destination}/32", *place, "proto", OWNER])

    def unmake(self, before: str | None) -> None:
        """Remove the route to that destination that bears our mark."""
        must(["ip", "route", "del", f"{self.destination}/32", "proto", OWNER])


def _route(found: dict[str, Any]) -> str:
    via = f"via {found['gateway']} " if "gateway" in found else ""
    kind = f"{found['type']} " if "type" in found else ""
    metric = f" metric {found['metric']}" if "metric" in found else ""
    return f"{kind}{via}dev {found.get('dev', '?')} src {found.get('prefsrc', '?')}{metric}"


@dataclass(frozen=True)
class NeighbourObject(Described):
    """A permanent neighbour: the MAC address that frames to an address go to."""

    kind: ClassVar[str] = "neighbour"

    dev: str
    address: str
    mac: str

    @property
    def key(self) -> str:
        """A device has one neighbour of an address."""
        return f"neighbour {self.dev} {self.address}"

    def look(self, seen: Seen) -> Look:
        """What the kernel only remembers may be replaced; what answers with another MAC not."""
        found = next((one for one in seen.neighbours(self.dev) if one["dst"] == self.address), None)
        if found is None:
            return Look("missing")
        states, mac = set(found.get("state", [])), found.get("lladdr", "none")
        marked = found.get("protocol") == OWNER
        if mac == self.mac and "PERMANENT" in states:
            return Look("present", marked=marked)
        words = f"{mac} {'/'.join(sorted(states))}, planned {self.mac} PERMANENT"
        if states & ANSWERS and mac != self.mac:
            return Look("different", f"{words}: another machine answers on this cable")
        return Look("different", words, marked=marked, settable=bool(states & LEARNED))

    def make(self) -> None:
        """Put the neighbour there."""
        argv = ["ip", "neigh", "replace", self.address, "lladdr", self.mac, "dev", self.dev]
        must([*argv, "nud", "permanent", "protocol", OWNER])

    def unmake(self, before: str | None) -> None:
        """Remove the neighbour; the kernel finds it again by itself."""
        must(["ip", "neigh", "del", self.address, "dev", self.dev])
