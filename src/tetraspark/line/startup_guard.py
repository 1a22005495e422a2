"""What ends a start that is under way, judged from the ranks' states and the nodes' memory.

The judgement is pure. What it is judged from is cheap: one `cat` a node every few seconds.
`nvidia-smi` is never asked, for each call slows the GPU's own work, and has no memory to tell on
a machine whose GPU shares it.
"""

import re
from collections.abc import Mapping, Sequence

from tetraspark.errors import Problem
from tetraspark.fleet.meminfo import GIB, Memory, large_blocks
from tetraspark.fleet.rank import RankState
from tetraspark.site.startup import Startup

NO_MEMORY = re.compile(r"NVRM:.*NV_ERR_NO_MEMORY")


def ending(
    states: Sequence[RankState],
    nodes: Sequence[str],
    memory: Mapping[str, Memory | None],
    limits: Startup,
) -> Problem | None:
    """Return what ends the start, or None.

    `nodes` has the node of each rank. `memory` is by node; None where it could not be read, which
    ends nothing. The kernel's killing comes first, also of a process in a container that runs on,
    then restarts, then memory that runs out, then a plain exit: that is often only the effect of
    the others.
    """
    rules = (
        *(_killed(one, nodes[one.rank]) for one in states),
        *(_restarted(one, nodes[one.rank]) for one in states),
        *(_short(node, found, limits) for node, found in memory.items()),
        *(_ended(one, nodes[one.rank]) for one in states),
    )
    return next((problem for problem in rules if problem is not None), None)


def warnings(memory: Mapping[str, Memory | None], limits: Startup) -> list[Problem]:
    """Return what does not end the start: little memory that is free of the page cache."""
    floor = limits.low_free_gib * GIB
    return [
        Problem(
            where=node,
            seen=f"{found}: the page cache holds what the GPU's allocator looks for",
            wanted=f"MemFree of {limits.low_free_gib:g} GiB while weights are loaded",
            fix=f"on {node}: sync && echo 1 | sudo tee /proc/sys/vm/drop_caches; "
            "startup.low_free_gib = 0 switches this off",
        )
        for node, found in memory.items()
        if found is not None and found.free < floor
    ]


def count_no_memory(dmesg: str) -> int:
    """Return how often the GPU's driver said in the kernel log that it found no memory."""
    return sum(NO_MEMORY.search(line) is not None for line in dmesg.splitlines())


def driver_short(node: str, before: str, after: str, buddyinfo: str) -> Problem | None:
    """Return what the kernel log has more of such lines than before a start; None for none.

    `before` and `after` are texts of `dmesg`, whose oldest lines go when its buffer is full.
    """
    more = count_no_memory(after) - count_no_memory(before)
    if more <= 0:
        return None
    blocks = large_blocks(buddyinfo)
    free = "unknown" if blocks is None else str(blocks)
    return Problem(
        where=node,
        seen=f"{more} more NVRM lines with NV_ERR_NO_MEMORY in dmesg; free blocks of 2 MiB and "
        f"more: {free}",
        wanted="memory in blocks that are large enough for the GPU's driver",
        fix=f"on {node}: echo 1 | sudo tee /proc/sys/vm/compact_memory; else reboot the node",
    )


def _killed(one: RankState, node: str) -> Problem | None:
    if not one.out_of_memory:
        return None
    wanted = "a rank that fits into the node's memory"
    fix = (
        f"on {node}: dmesg | grep -i 'killed process'; lower engine.kv_tokens or "
        "engine.mem_fraction, and look for other programs: ps -eo rss,comm --sort -rss | head"
    )
    seen = "the kernel killed a process of it for memory (OOMKilled)"
    return Problem(_where(one, node), seen, wanted, fix)


def _restarted(one: RankState, node: str) -> Problem | None:
    if one.restarts <= 0:
        return None
    seen = f"its container has restarted {one.restarts} times"
    wanted = "a rank that stays up: the others cannot meet one that begins anew"
    fix = f"tetraspark logs {one.rank}; find what restarts it: docker inspect on {node}"
    return Problem(_where(one, node), seen, wanted, fix)


def _short(node: str, memory: Memory | None, limits: Startup) -> Problem | None:
    floor = limits.min_available_gib
    if memory is None or memory.available >= floor * GIB:
        return None
    return Problem(
        where=node,
        seen=str(memory),
        wanted=f"MemAvailable of at least {floor:g} GiB (startup.min_available_gib)",
        fix="lower engine.kv_tokens, engine.mem_fraction or engine.chunked_prefill_size; "
        f"on {node}: ps -eo rss,comm --sort -rss | head",
    )


def _ended(one: RankState, node: str) -> Problem | None:
    if one.state not in ("exited", "absent"):
        return None
    seen = f"it ended: {one.exit}" if one.exit else "it is gone and left no exit record"
    wanted = "a rank that stays up"
    return Problem(_where(one, node), seen, wanted, f"tetraspark logs {one.rank}")


def _where(one: RankState, node: str) -> str:
    return f"rank {one.rank} ({node})"
