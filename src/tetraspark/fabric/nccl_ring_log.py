"""What a rank's log tells of NCCL's ring: trees, channels, the devices it really uses. Pure.

All of it needs NCCL_DEBUG=INFO, the devices NCCL_DEBUG_SUBSYS=INIT,NET as well. Planning lines name
devices and trees that are never connected, so no line of a plan counts for a connection. The words
`Tree` and `PAT` change their case between versions.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

_TREES = re.compile(r"NCCL INFO Trees (\[\d+\].*)")
_CONNECTED = re.compile(r"NCCL INFO Connected all (rings|trees)", re.IGNORECASE)
_DISABLED = re.compile(r"\b(tree|pat) transport setup disabled", re.IGNORECASE)
_SET = re.compile(r"NCCL INFO (NCCL_\w+) set by environment to (\S+?)\.?$")
_CHANNEL = re.compile(r"NCCL INFO Channel \S+ ?: .* via NET/IB/(\d{1,9})\b")
_OVERRIDE = re.compile(r"overriding dev (\d{1,9}) with dev (\d{1,9})\b")
_LISTENER = re.compile(r"ListenerRouting format=\S+ advertised=(\d{1,9}) observed=(\d{1,9})\b")
_FINAL = re.compile(r"RouteFinal side=(send|recv) .*\bhca=(\S+)")


@dataclass(frozen=True)
class RingLog:
    """NCCL's ring as a rank's log shows it.

    `trees` are planned ones; `connected` what was connected (`rings`, `trees`); `disabled` what a
    patched library left out (`tree`, `pat`). `channels` are the device numbers that channels are
    planned on, `overrides` those that were replaced, with what. `advertised` are the GIDs that
    listeners of a patched library sent, at most; `routes` the ends of its queue pairs.
    """

    trees: tuple[str, ...] = ()
    connected: frozenset[str] = frozenset()
    disabled: frozenset[str] = frozenset()
    told: Mapping[str, str] = field(default_factory=dict)
    channels: frozenset[int] = frozenset()
    overrides: frozenset[tuple[int, int]] = frozenset()
    advertised: int | None = None
    routes: frozenset[tuple[str, str]] = frozenset()

    def read(self, text: str) -> Self:
        """Return what is known after one more line."""
        if one := _DISABLED.search(text):
            return replace(self, disabled=self.disabled | {one[1].lower()})
        if one := _FINAL.search(text):
            return replace(self, routes=self.routes | {(one[1], one[2])})
        if one := _OVERRIDE.search(text):
            return replace(self, overrides=self.overrides | {(int(one[1]), int(one[2]))})
        if one := _LISTENER.search(text):
            return replace(self, advertised=max(int(one[1]), self.advertised or 0))
        if one := _CHANNEL.search(text):
            return replace(self, channels=self.channels | {int(one[1])})
        if one := _CONNECTED.search(text):
            return replace(self, connected=self.connected | {one[1].lower()})
        if one := _TREES.search(text):
            return replace(self, trees=(*self.trees, one[1].strip()))
        if one := _SET.search(text):
            return replace(self, told={**self.told, one[1]: one[2]})
        return self

    def used(self, devices: Sequence[str]) -> tuple[frozenset[str], frozenset[str]]:
        """Return the devices that surely have connections, and those that may have.

        `devices` are NCCL's, by number; what has a higher one is fused of several. A number that
        was replaced for one peer may still serve another.
        """
        if self.routes:
            return frozenset(device for _, device in self.routes), frozenset()
        replaced = {old for old, _ in self.overrides}
        sure = (self.channels - replaced) | {new for _, new in self.overrides}
        names = frozenset(devices[one] for one in sure if one < len(devices))
        fused = any(one >= len(devices) for one in sure)
        maybe = {devices[one] for one in replaced if one < len(devices)}
        return names, frozenset(devices if fused else maybe) - names


def read_ring(texts: Iterable[str]) -> RingLog:
    """Read the lines of one rank."""
    found = RingLog()
    for text in texts:
        found = found.read(text)
    return found
