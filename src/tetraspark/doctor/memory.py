"""Memory of a node, by what the kernel says of it: on GB10 the GPU has none of its own."""

import re
from collections.abc import Iterator

from tetraspark.doctor.finding import Finding
from tetraspark.doctor.node_view import NodeView
from tetraspark.doctor.size import gib
from tetraspark.fleet.facts import Wanted
from tetraspark.fleet.meminfo import GIB, LARGE_ORDER, Memory, large_blocks, read_meminfo

MEMINFO = "/proc/meminfo"
BUDDYINFO = "/proc/buddyinfo"
WANTED = Wanted(files=(MEMINFO, BUDDYINFO))
USUAL_BYTES = 90 * GIB
"""What public launchers of this model ask for before a start where no share is configured."""
LOCAL_RANK_BYTES = 3 * GIB // 2
"""What one CPU rank of a local line may take with the bundled model (docs/quickstart.md)."""
DROP = "sync; echo 1 | sudo tee /proc/sys/vm/drop_caches; echo 1 | sudo tee " + (
    "/proc/sys/vm/compact_memory"
)


def meminfo(view: NodeView) -> Memory | None:
    """Return the memory of a node; None where it cannot be told."""
    return read_meminfo(view.facts.files.get(MEMINFO, ""))


def amount(view: NodeView, name: str) -> int | None:
    """Return one row of /proc/meminfo in bytes, or None without it."""
    found = re.search(rf"(?m)^{name}: +(\d+) kB$", view.facts.files.get(MEMINFO, ""))
    return int(found[1]) * 1024 if found else None


def needed(view: NodeView) -> int:
    """Return the bytes that a start takes on this node: the configured share of memory, if any."""
    site = view.loaded.site
    if site.kind == "local":
        return LOCAL_RANK_BYTES * len(site.nodes)
    share = site.engine.mem_fraction
    if view.rank == 0 and site.engine.head_mem_fraction is not None:
        share = site.engine.head_mem_fraction
    found = meminfo(view)
    return int(share * found.total) if share is not None and found else USUAL_BYTES


def available(view: NodeView) -> Iterator[Finding]:
    """Judge MemAvailable, with MemFree and the page cache told apart."""
    found, wanted = meminfo(view), f"MemAvailable of at least {gib(needed(view))}"
    fix = view.shell("ps -eo rss,pid,comm --sort=-rss | head")
    if found is None:
        yield _unseen(view, wanted)
    elif found.available < needed(view):
        yield Finding("failed", _told(view, found), wanted, fix)
    else:
        yield Finding("ok", _told(view, found), wanted)


def free(view: NodeView) -> Iterator[Finding]:
    """Judge what the page cache leaves free: the GPU's own count of free memory is MemFree."""
    found, wanted = meminfo(view), f"MemFree of at least {gib(needed(view))}, not page cache"
    if found is None:
        yield _unseen(view, wanted)
    elif found.free < needed(view) <= found.available:
        evict = f"tetraspark weights evict --site {view.loaded.path}"
        fix = f"{evict}; if that is not enough: {view.shell(DROP)}"
        yield Finding("warning", _told(view, found), wanted, fix)
    else:
        yield Finding("ok", _told(view, found), wanted)


def _unseen(view: NodeView, wanted: str) -> Finding:
    return Finding("unknown", f"{MEMINFO} cannot be read", wanted, view.shell(f"cat {MEMINFO}"))


def _told(view: NodeView, found: Memory) -> str:
    cache = (amount(view, "Cached") or 0) + (amount(view, "Buffers") or 0)
    return f"{found}; page cache {gib(cache)}"


def fragmented(view: NodeView) -> Iterator[Finding]:
    """Judge whether free memory is left in blocks that the GPU driver can take."""
    wanted = f"free blocks of order {LARGE_ORDER} or more in {BUDDYINFO}"
    blocks = large_blocks(view.facts.files.get(BUDDYINFO, ""))
    if blocks is None:
        yield Finding("unknown", f"no zones in {BUDDYINFO}", wanted, view.shell(f"cat {BUDDYINFO}"))
    elif blocks == 0:
        yield Finding("warning", "none", wanted, f"{view.shell(DROP)}; or reboot the node")
    else:
        yield Finding("ok", f"{blocks} blocks", wanted)
