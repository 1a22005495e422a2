"""Memory of a node, from the kernel's own files. Pure."""

import re
from dataclasses import dataclass

GIB = 1 << 30
_ROW = re.compile(r"^(\w+):\s+(\d{1,18}) kB$", re.MULTILINE)
_ZONE = re.compile(r"^Node\s+\d+, zone\s+(\w+)((?:\s+\d{1,18})+)\s*$", re.MULTILINE)
LARGE_ORDER = 9
"""Blocks of 2^9 pages and more (2 MiB with pages of 4 KiB): what the GPU's driver asks for."""


@dataclass(frozen=True)
class Memory:
    """Bytes in all, free of any use (what a GPU that shares the memory calls free), available once
    the page cache has given way, and in that cache, where it is told.
    """

    total: int
    free: int
    available: int
    cached: int | None = None

    def __str__(self) -> str:
        free, available, total = (n / GIB for n in (self.free, self.available, self.total))
        return f"MemFree {free:.1f} GiB, MemAvailable {available:.1f} GiB of {total:.1f} GiB"


def read_meminfo(text: str) -> Memory | None:
    """Read /proc/meminfo; None for a text that is not one."""
    rows = {name: int(value) * 1024 for name, value in _ROW.findall(text)}
    try:
        return Memory(rows["MemTotal"], rows["MemFree"], rows["MemAvailable"], rows.get("Cached"))
    except KeyError:
        return None


def large_blocks(text: str) -> int | None:
    """Return the free blocks of order 9 and above in a /proc/buddyinfo; None for another text."""
    zones = _ZONE.findall(text)
    if not zones:
        return None
    return sum(sum(map(int, counts.split()[LARGE_ORDER:])) for _, counts in zones)
