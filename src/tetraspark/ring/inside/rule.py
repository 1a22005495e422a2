"""Relay rules as objects of the ring: runs inside the node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tetraspark.ring.inside.kind import Described, Look
from tetraspark.ring.inside.rule_text import content_of, ethertype, number, told, words_of
from tetraspark.ring.inside.say import must
from tetraspark.ring.inside.seen import Seen


@dataclass(frozen=True)
class RuleObject(Described):
    """A relay: frames with a tag, from one MAC address to ours, leave with the next tag and MAC.

    `tag` and `new_tag` are EtherTypes, `pref` and `handle` numbers of the filter; `out` is the
    device it leaves by. tc and the card do it; the host's kernel never sees the frame.
    """

    kind: ClassVar[str] = "rule"

    dev: str
    pref: int
    handle: int
    tag: int
    src_mac: str
    dst_mac: str
    new_tag: int
    new_mac: str
    out: str

    @property
    def key(self) -> str:
        """A device has one filter of a preference and handle."""
        return f"rule {self.dev} {self.pref}/{self.handle}"

    def look(self, seen: Seen) -> Look:
        """Another filter for the same frames is in its place, whatever its preference."""
        if seen.link(self.dev) is None or seen.link(self.out) is None:
            return Look("no-link", f"there is no {self.dev} or no {self.out}")
        found = seen.filters(self.dev)
        same = [one for one in found if number(one) == (self.pref, self.handle)]
        rivals = [
            one
            for one in found
            if one not in same and (content_of(one)[0] == self.content()[0] or self._blocks(one))
        ]
        if rivals:
            return Look("different", f"another filter for it: {words_of(rivals[0])}")
        if not same:
            return Look("missing")
        if content_of(same[0]) != self.content():
            words = f"{words_of(same[0])}, planned {self.words()}"
            return Look("different", words, marked=True)
        # The word is a key of its own: `not_in_hw` holds it as a part of its name.
        if same[0]["options"].get("in_hw") is not True:
            return Look("not-in-hardware", "the card did not take it", marked=True)
        return Look("present", marked=True)

    def _blocks(self, found: dict[str, Any]) -> bool:
        """Say whether a filter has our preference for another protocol: tc admits one for each."""
        return found.get("pref") == self.pref and ethertype(found["protocol"]) != self.tag

    def content(self) -> tuple[Any, ...]:
        """Return what the rule matches and does, as `content_of` reads it of tc."""
        match = (self.tag, self.src_mac, self.dst_mac)
        return match, True, self.new_tag, self.new_mac, self.out

    def words(self) -> str:
        """Return the content as messages show it."""
        return told(self.content())

    def make(self) -> None:
        """Put the filter there; one of ours that is not as planned goes first."""
        if any(number(one) == (self.pref, self.handle) for one in Seen().filters(self.dev)):
            self.unmake(None)
        place = ["dev", self.dev, "ingress", "protocol", f"0x{self.tag:04x}"]
        numbers = ["pref", str(self.pref), "handle", str(self.handle), "flower", "skip_sw"]
        match = ["src_mac", self.src_mac, "dst_mac", self.dst_mac]
        edit = ["action", "pedit", "ex", "munge", "eth"]
        kind = [*edit, "type", "set", f"0x{self.new_tag:04x}", "pipe"]
        card = [*edit, "dst", "set", self.new_mac, "pipe"]
        send = ["action", "mirred", "egress", "redirect", "dev", self.out]
        must(["tc", "filter", "add", *place, *numbers, *match, *kind, *card, *send])

    def unmake(self, before: str | None) -> None:
        """Remove the filter."""
        place = ["dev", self.dev, "ingress", "protocol", f"0x{self.tag:04x}"]
        numbers = ["pref", str(self.pref), "handle", str(self.handle), "flower"]
        must(["tc", "filter", "del", *place, *numbers])


def packets(rule: RuleObject, seen: Seen) -> int:
    """Return how many packets the card has sent on by a rule; what software sent does not count."""
    for one in seen.filters(rule.dev):
        if number(one) == (rule.pref, rule.handle):
            stats = [act.get("stats", {}) for act in one["options"].get("actions", [])]
            return max((int(it.get("hw_packets", it.get("packets", 0))) for it in stats), default=0)
    return 0
