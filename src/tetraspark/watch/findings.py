"""What is worth looking at beside the state: memory, pools, lanes, canaries, late ranks. Pure."""

from collections.abc import Iterable, Iterator, Sequence

from tetraspark.errors import Problem
from tetraspark.fleet.meminfo import GIB
from tetraspark.site.schema import Startup
from tetraspark.watch.look import Look
from tetraspark.watch.observation import EngineSample, Finding, LaneSample, RankSample

FULL = 0.9
"""A share of a pool above which requests wait for it."""
LATE_TIMES = 8
"""So often at least a peer was waited for, between two looks, before it is called slow."""
LATE_RATIO = 4
"""And so many times as often as all others together."""


def findings(history: Sequence[Look], limits: Startup, nodes: bool) -> tuple[Finding, ...]:
    """Return what the newest look shows, and what grew since the one before it.

    `nodes` says that each rank has a machine of its own, whose GPU shares its memory.
    """
    now = history[-1]
    found = [one for rank in now.ranks if nodes for one in _page_cache(rank, limits)]
    found += [one for rank in now.ranks[: None if nodes else 1] for one in _memory(rank, limits)]
    found += [one for rank in now.ranks for one in _restarts(rank)]
    found += damaged(now.damaged)
    found += _pool(now.engine)
    found += _canary(now)
    before = history[-2] if len(history) > 1 and history[-2].run == now.run else None
    found += _lanes(now, before)
    if before is not None:
        found += _slow(now, before)
    return tuple(found)


def damaged(problems: Iterable[Problem]) -> tuple[Finding, ...]:
    """Return records of the line that could not be read, as findings."""
    return tuple(
        Finding("RECORD.DAMAGED", one.where, one.seen, one.wanted, one.fix) for one in problems
    )


def _where(rank: RankSample) -> str:
    return f"rank {rank.rank} ({rank.node})"


def _memory(rank: RankSample, limits: Startup) -> Iterator[Finding]:
    available = rank.memory_available
    if available is not None and available < limits.min_available_gib * GIB:
        wanted = f"MemAvailable of {limits.min_available_gib:g} GiB: below, the kernel freezes"
        fix = f"on {rank.node}: ps aux --sort=-rss | head; end what does not belong there"
        yield Finding("MEMORY.AVAILABLE", _where(rank), _told(rank), wanted, fix)


def _page_cache(rank: RankSample, limits: Startup) -> Iterator[Finding]:
    """A GPU that shares the memory calls MemFree free, and not what the page cache could give."""
    free, cache = rank.memory_free, rank.page_cache
    if free is None or cache is None or free >= limits.low_free_gib * GIB or cache <= free:
        return
    wanted = f"MemFree of {limits.low_free_gib:g} GiB: what the GPU's allocator can have"
    fix = "tetraspark weights evict gives the checkpoint's page cache back"
    yield Finding("MEMORY.PAGE_CACHE", _where(rank), _told(rank), wanted, fix)


def _told(rank: RankSample) -> str:
    names = ("MemFree", "MemAvailable", "page cache")
    sizes = (rank.memory_free, rank.memory_available, rank.page_cache)
    pairs = zip(names, sizes, strict=True)
    return ", ".join(f"{name} {size / GIB:.1f} GiB" for name, size in pairs if size is not None)


def _restarts(rank: RankSample) -> Iterator[Finding]:
    if rank.state == "restarted":
        wanted = "RestartCount 0: what runs has lost its peers"
        fix = "tetraspark logs; then tetraspark serve --replace"
        yield Finding("RANK.RESTARTED", _where(rank), rank.detail, wanted, fix)


def _pool(engine: EngineSample) -> Iterator[Finding]:
    """Tell a full pool from a full sliding-window part of one that has room."""
    if not engine.waiting or engine.kv_used is None:
        return
    seen = f"full {engine.kv_used:.0%} used, waiting {engine.waiting}"
    if engine.swa_used is not None and engine.swa_used >= FULL > engine.kv_used:
        seen = f"full {engine.kv_used:.0%} used, swa {engine.swa_used:.0%} used, "
        seen += f"waiting {engine.waiting}: the limit is the SWA quota, not the KV size"
        fix = "raise --swa-full-tokens-ratio, or lower engine.max_running_requests"
        yield Finding("POOL.SWA", "rank 0", seen, "room in the sliding-window part", fix)
    elif engine.kv_used >= FULL:
        fix = "raise engine.kv_tokens, or lower engine.max_running_requests"
        yield Finding("POOL.FULL", "rank 0", seen, "room in the KV pool", fix)


def _canary(look: Look) -> Iterator[Finding]:
    canary = look.canary
    if canary is not None and not canary.ok:
        name = "CANARY.LOST" if look.silent else "CANARY.ANSWER"
        fix = "tetraspark status; tetraspark logs 0"
        yield Finding(name, "public endpoint", canary.reason, "the canary's answer in time", fix)


def _lanes(now: Look, before: Look | None) -> Iterator[Finding]:
    old = {(rank.rank, *_key(lane)): lane for rank in _ranks(before) for lane in rank.lanes}
    for rank in now.ranks:
        for lane in rank.lanes:
            where = f"{_where(rank)} {lane.device} lane {lane.lane} to rank {lane.peer}"
            known = old.get((rank.rank, *_key(lane)))
            grown = lane.errors - known.errors if known else 0
            if lane.state == "down":
                fix = "tetraspark fabric prove"
                yield Finding("LANE.DOWN", where, "it is down", "every lane up", fix)
            elif grown > 0:
                fix = "tetraspark fabric prove; look at its cable"
                seen = f"{grown} more errors, {lane.errors} in all"
                yield Finding("LANE.ERRORS", where, seen, "no errors on a lane", fix)


def _key(lane: LaneSample) -> tuple[int, int]:
    return lane.peer, lane.lane


def _ranks(look: Look | None) -> tuple[RankSample, ...]:
    return look.ranks if look is not None else ()


def _slow(now: Look, before: Look) -> Iterator[Finding]:
    """Name the rank that all others waited for, if it is one: each of a line's waits sometimes."""
    old = {(rank.rank, peer): count for rank in before.ranks for peer, count in rank.late}
    grown = dict.fromkeys((rank.rank for rank in now.ranks), 0)
    for rank in now.ranks:
        for peer, count in rank.late:
            grown[peer] = grown.get(peer, 0) + max(count - old.get((rank.rank, peer), count), 0)
    worst = max(grown, key=lambda rank: grown[rank], default=None)
    if worst is None or grown[worst] < LATE_TIMES:
        return
    others = sum(grown.values()) - grown[worst]
    if grown[worst] >= LATE_RATIO * max(others, 1):
        where = next((_where(rank) for rank in now.ranks if rank.rank == worst), f"rank {worst}")
        seen = f"waited for {grown[worst]} times since the last look, all others {others} times"
        fix = "its clocks, its temperature, what else runs there: tetraspark doctor"
        yield Finding("RANK.SLOW", where, seen, "ranks that are equally fast", fix)
