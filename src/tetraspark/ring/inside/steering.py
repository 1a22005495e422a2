"""Offload switches, steering modes and clsact as objects of the ring: runs inside the node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tetraspark.ring.inside.kind import Described, Look
from tetraspark.ring.inside.say import must
from tetraspark.ring.inside.seen import Seen


@dataclass(frozen=True)
class OffloadObject(Described):
    """`hw-tc-offload on`: without it no rule of the device gets into hardware."""

    kind: ClassVar[str] = "offload"

    dev: str

    @property
    def key(self) -> str:
        """A device has one such switch."""
        return f"offload {self.dev}"

    def look(self, seen: Seen) -> Look:
        """`off [fixed]` is a device that cannot."""
        if seen.link(self.dev) is None:
            return Look("no-link", "there is no such device")
        value = seen.offload(self.dev)
        if value.split()[0] == "on":
            return Look("present")
        if "fixed" in value:
            return Look("different", f"hw-tc-offload {value}: this device cannot")
        return Look("different", f"hw-tc-offload {value}", settable=True, before="off")

    def make(self) -> None:
        """Switch it on."""
        must(["ethtool", "-K", self.dev, "hw-tc-offload", "on"])

    def unmake(self, before: str | None) -> None:
        """Switch it back off."""
        if before is not None:
            must(["ethtool", "-K", self.dev, "hw-tc-offload", before])


@dataclass(frozen=True)
class QdiscObject(Described):
    """clsact: the place of a device where relay rules go."""

    kind: ClassVar[str] = "qdisc"

    dev: str

    @property
    def key(self) -> str:
        """A device has one place for ingress filters."""
        return f"qdisc {self.dev}"

    def look(self, seen: Seen) -> Look:
        """An `ingress` qdisc keeps clsact out, and is somebody's."""
        if seen.link(self.dev) is None:
            return Look("no-link", "there is no such device")
        found = [one["kind"] for one in seen.qdiscs(self.dev)]
        if not found:
            return Look("missing")
        # It has nothing to mark: the journal alone knows whose it is.
        state = "present" if found == ["clsact"] else "different"
        return Look(state, "" if state == "present" else f"{found[0]}, planned clsact")

    def make(self) -> None:
        """Add clsact."""
        must(["tc", "qdisc", "add", "dev", self.dev, "clsact"])

    def unmake(self, before: str | None) -> None:
        """Remove clsact, unless somebody has put filters there since."""
        seen = Seen()
        others = must(["tc", "-j", "filter", "show", "dev", self.dev, "egress"]).strip()
        if not seen.filters(self.dev) and others in ("", "[]"):
            must(["tc", "qdisc", "del", "dev", self.dev, "clsact"])


@dataclass(frozen=True)
class SteeringObject(Described):
    """`flow_steering_mode` of a PCI function, a runtime parameter of devlink."""

    kind: ClassVar[str] = "steering"

    pci: str
    mode: str

    @property
    def key(self) -> str:
        """A function has one mode."""
        return f"steering {self.pci}"

    def look(self, seen: Seen) -> Look:
        """The value that is in effect counts."""
        found = seen.parameter(self.pci, "flow_steering_mode", "runtime")
        if found is None:
            return Look("different", f"no flow_steering_mode, planned {self.mode}")
        if str(found) == self.mode:
            return Look("present")
        words = f"flow_steering_mode {found}, planned {self.mode}"
        return Look("different", words, settable=True, before=str(found))

    def make(self) -> None:
        """Set the mode."""
        self._set(self.mode)

    def unmake(self, before: str | None) -> None:
        """Set it back."""
        if before is not None:
            self._set(before)

    def _set(self, mode: str) -> None:
        name = ["name", "flow_steering_mode", "value", mode, "cmode", "runtime"]
        must(["devlink", "dev", "param", "set", f"pci/{self.pci}", *name])
