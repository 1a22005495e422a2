"""Both proxies on the same ranks, lanes and tensors, in turn; runs inside the VM."""

import contextlib
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from tests.collectives.oracle import reduced, shard
from tests.collectives.ranks import FolderExchange
from tests.rdma.rival.ours import Ours
from tests.rdma.rival.theirs import Theirs

SIZES = (2048, 16 << 10, 60 << 10)
"""Payloads in bytes; the last is one decode step of one request."""
ROUNDS, OPERATIONS = 5, 8
IDLE_S = 1.0


def threads() -> dict[int, tuple[float, int]]:
    """Return CPU seconds and voluntary switches of this process's other threads."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        # A thread that was just joined may still be listed.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if int(task.name) != os.getpid():
                found[int(task.name)] = usage(task)
    return found


def usage(task: Path) -> tuple[float, int]:
    """Return CPU seconds and voluntary switches of one thread."""
    words = (task / "stat").read_text().rpartition(")")[2].split()
    ticks = int(words[11]) + int(words[12])
    lines = (task / "status").read_text().splitlines()
    slept = next(line for line in lines if line.startswith("voluntary"))
    return ticks / os.sysconf("SC_CLK_TCK"), int(slept.split()[1])


def cost(before: dict[int, tuple[float, int]]) -> tuple[float, int]:
    """Return what the other threads have used since."""
    now = threads()
    living = before.keys() & now.keys()
    used = [(now[one][0] - before[one][0], now[one][1] - before[one][1]) for one in living]
    return sum(cpu for cpu, _ in used), sum(slept for _, slept in used)


def timed(one: Ours | Theirs, rank: int, world: int, nbytes: int) -> float:
    """Return microseconds for one all-reduce, of a row of them; the sums are checked."""
    tensor = shard(nbytes, rank, (nbytes // 2,))
    out = torch.empty_like(tensor)
    start = time.perf_counter()
    for _ in range(OPERATIONS):
        one.reduce(tensor, out)
    took = time.perf_counter() - start
    wanted = reduced([shard(nbytes, other, (nbytes // 2,)) for other in range(world)])
    assert torch.equal(out, wanted), (one.name, nbytes)
    return took / OPERATIONS * 1e6


def rank_of(rank: int, world: int, rails: int, folder: Path, pipe: Connection) -> None:
    """Time both in turn and send what this rank saw."""
    exchange = FolderExchange(folder, rank, world)
    pair = [kind(rank, world, rails, exchange, max(SIZES)) for kind in (Ours, Theirs)]
    found: dict[str, Any] = {one.name: {"us": {size: [] for size in SIZES}} for one in pair}
    for one in pair:
        one.wake()
        for size in SIZES:
            timed(one, rank, world, size)
        exchange(b"")
        one.rest()
    for _ in range(ROUNDS):
        for one in pair:
            one.wake()
            before, counted = threads(), one.counted()
            for size in SIZES:
                exchange(b"")
                found[one.name]["us"][size].append(timed(one, rank, world, size))
            exchange(b"")
            posts, completions = one.counted()
            operations = OPERATIONS * len(SIZES)
            found[one.name]["posts"] = (posts - counted[0]) / operations
            found[one.name]["completions"] = (completions - counted[1]) / operations
            found[one.name]["woken"] = cost(before)[1] / operations
            one.rest()
    for one in reversed(pair):
        # Theirs first, so that it is closed when ours idles; ours never rests.
        one.wake()
        before = threads()
        time.sleep(IDLE_S)
        found[one.name]["idle_cpu"] = cost(before)[0] / IDLE_S
        exchange(b"")
        one.close()
    pipe.send(found)


def contest(world: int, rails: int) -> dict[str, Any]:
    """Run every rank as a process; return medians over rounds of the slowest rank."""
    fork = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        pipes, processes = [], []
        for rank in range(world):
            here, there = fork.Pipe()
            arguments = (rank, world, rails, Path(folder), there)
            processes.append(fork.Process(target=rank_of, args=arguments))
            processes[-1].start()
            there.close()
            pipes.append(here)
        ranks = [pipe.recv() for pipe in pipes]
        for process in processes:
            process.join()
    return {"world": world, "rails": rails, **{name: merged(ranks, name) for name in ranks[0]}}


def merged(ranks: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """Return one contender's figures over the ranks."""
    slowest = {}
    for size in SIZES:
        rounds = zip(*(rank[name]["us"][size] for rank in ranks), strict=True)
        slowest[size] = statistics.median(map(max, rounds))
    names = ("posts", "completions", "woken", "idle_cpu")
    means = {key: statistics.mean(rank[name][key] for rank in ranks) for key in names}
    return {"us": slowest, **means}


if __name__ == "__main__":
    print(json.dumps([contest(*map(int, text.split("x"))) for text in sys.argv[1:]]))
