"""Files of a persistent ring, and files of others that speak of its devices: inside the node."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tetraspark.ring.inside import store
from tetraspark.ring.inside.kind import Described, Look
from tetraspark.ring.inside.seen import Seen

NETPLAN = Path("/etc/netplan")
PROFILES = Path("/etc/NetworkManager/system-connections")


@dataclass(frozen=True)
class FileObject(Described):
    """A file with exactly this text and mode; what outlives a reboot is nothing but these."""

    kind: ClassVar[str] = "file"

    path: str
    text: str
    mode: int

    @property
    def key(self) -> str:
        """A path has one file."""
        return f"file {self.path}"

    def look(self, seen: Seen) -> Look:
        """A file with another byte is another file."""
        path = Path(self.path)
        if path.is_symlink() or (path.exists() and not path.is_file()):
            return Look("different", "a link or a folder, planned a file")
        if not path.exists():
            return Look("missing")
        if path.read_text(errors="replace") != self.text:
            return Look("different", "another text than planned")
        mode = path.stat().st_mode & 0o7777
        if mode != self.mode:
            return Look("different", f"mode {mode:04o}, planned {self.mode:04o}")
        return Look("present")

    def make(self) -> None:
        """Write it."""
        store.write(Path(self.path), self.text.encode(), self.mode)

    def unmake(self, before: str | None) -> None:
        """Remove it."""
        store.remove(Path(self.path))


def speaking_of(devices: list[str], own: set[str]) -> list[str]:
    """Return the files of netplan and NetworkManager, other than our own, that name a device.

    A file that cannot be read counts by its name alone: it could speak of any of them.
    """
    names = re.compile(r"(?<![\w.-])(" + "|".join(map(re.escape, devices)) + r")(?![\w.-])")
    found = []
    for path in [*sorted(NETPLAN.glob("*.yaml")), *sorted(PROFILES.glob("*"))]:
        if str(path) in own or not devices:
            continue
        try:
            speaks = bool(names.search(path.read_text(errors="replace")))
        except OSError:
            speaks = path.name.startswith("90-NM-")
        if speaks:
            found.append(str(path))
    return found


def later(found: list[str], own: set[str]) -> list[str]:
    """Return those netplan files whose values win over our own: netplan reads in order of name."""
    ours = [Path(one).name for one in own if Path(one).parent == NETPLAN]
    netplan = [one for one in found if Path(one).parent == NETPLAN]
    return [one for one in netplan if ours and Path(one).name > min(ours)]
