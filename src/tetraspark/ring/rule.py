"""A relay rule: what the NIC of a node between two others does with their tagged frames."""

from dataclasses import dataclass
from typing import Literal

from tetraspark.ring.tag import relays_left

PREFERENCE = 10
"""A rule for frames with k relays left has preference 10 + k."""


@dataclass(frozen=True)
class RelayRule:
    """One tc flower filter at the ingress of `netdev`, in hardware only.

    Frames with the EtherType `tag`, from the card `source_mac` to the card `destination_mac`, go
    out of `redirect` with the EtherType `new_tag` and to the card `new_mac`. `hop` counts the
    relays from the origin, from 1; with the tag it tells rules of one device apart.
    """

    netdev: str
    tag: int
    hop: int
    source_mac: str
    destination_mac: str
    new_tag: int
    new_mac: str
    redirect: str

    @property
    def preference(self) -> int:
        """The filter's `pref`."""
        return PREFERENCE + (relays_left(self.tag) or 0)

    @property
    def handle(self) -> int:
        """The filter's `handle`."""
        return self.hop

    @property
    def protocol(self) -> str:
        """The EtherType as tc takes and shows it."""
        return f"{self.tag:#06x}"

    def argv(self, verb: Literal["add", "replace", "del"]) -> tuple[str, ...]:
        """Return the `tc filter` command that adds, replaces or deletes it."""
        number = ("pref", str(self.preference), "handle", str(self.handle), "flower")
        place = ("dev", self.netdev, "ingress", "protocol", self.protocol, *number)
        if verb == "del":
            return ("tc", "filter", verb, *place)
        match = ("skip_sw", "src_mac", self.source_mac, "dst_mac", self.destination_mac)
        edit = ("action", "pedit", "ex", "munge", "eth")
        kind = (*edit, "type", "set", f"{self.new_tag:#06x}", "pipe")
        card = (*edit, "dst", "set", self.new_mac, "pipe")
        send = ("action", "mirred", "egress", "redirect", "dev", self.redirect)
        return ("tc", "filter", verb, *place, *match, *kind, *card, *send)
