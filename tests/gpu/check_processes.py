"""Ranks as processes, rank r on GPU r modulo their number: bits, graphs, lost ranks.

With more ranks than GPUs the kernels take turns by time slicing: correctness only, no speed.
Run: `python tests/gpu/check_processes.py [--ranks W]`; prints PASS or FAIL a case, exits 1 on FAIL.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import torch

from tests.gpu.processes import Team, exchange, run_team
from tests.gpu.values import raw, summed, values
from tetraspark.collectives.cuda_events import new_event
from tetraspark.collectives.cuda_group import CudaGroup
from tetraspark.collectives.failure import CollectiveError
from tetraspark.collectives.settings import Settings
from tetraspark.collectives.shm import ShmTransport

SETTINGS = Settings(max_reduce_bytes=1 << 20, max_gather_bytes=1 << 17, lanes=4, late_limit_s=20.0)
SIZES = (16, 4112, 61440, 491520, 1 << 20)


def boundary(group: CudaGroup) -> None:
    """Pass the result boundary of what was enqueued."""
    event = new_event()
    event.record()
    group.check(60.0, event.query)


def transport(rank: int, delivery: str) -> ShmTransport:
    """Return a rank's transport; "queued" has a relay post what the kernels stage."""
    return ShmTransport(rank, pull=delivery == "pull", queued=delivery == "queued")


def bits(rank: int, world: int, device: torch.device, delivery: str) -> int:
    """Check eager and replayed operations against the CPU kernel; returns how many."""
    settings = Settings(
        max_reduce_bytes=1 << 20, max_gather_bytes=1 << 17, lanes=4, late_limit_s=20.0,
        delivery="pull" if delivery == "pull" else "push",
    )  # fmt: skip
    checked = 0
    way = transport(rank, delivery)
    with CudaGroup.open(rank, world, exchange, device, settings, way) as group:
        x = torch.zeros(61440 // 2, dtype=torch.bfloat16, device=device)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            total, parts = group.all_reduce(x), group.all_gather(x[:1000], -1)
        for seed, nbytes in enumerate(SIZES):
            for dtype in (torch.bfloat16, torch.float16, torch.float32):
                shape = (nbytes // dtype.itemsize,)
                shards = [values(seed * 31 + r, shape, dtype) for r in range(world)]
                seen = group.all_reduce(shards[rank].to(device))
                boundary(group)
                assert raw(seen) == summed(shards), f"{dtype} {nbytes} bytes"
                checked += 1
        for replay in range(10):
            shards = [values(replay * 17 + r, tuple(x.shape), x.dtype) for r in range(world)]
            x.copy_(shards[rank])
            graph.replay()
            boundary(group)
            assert raw(total) == summed(shards), f"replay {replay}"
            assert raw(parts) == raw(torch.cat([one[:1000] for one in shards])), f"gather {replay}"
            checked += 2
    return checked


def survive(
    rank: int, world: int, device: torch.device, how: str, delivery: str = "pull"
) -> tuple[str, float]:
    """Reduce until a rank is gone; returns the root and the seconds from then to the error."""
    settings = Settings(
        max_reduce_bytes=1 << 20, max_gather_bytes=1 << 17, lanes=4, freeze_limit_s=1.0
    )
    group = CudaGroup.open(rank, world, exchange, device, settings, transport(rank, delivery))
    x = torch.ones(4096, dtype=torch.bfloat16, device=device)
    group.all_reduce(x)
    boundary(group)
    exchange(b"")
    if rank == world - 1:
        os.kill(os.getpid(), signal.SIGKILL if how == "killed" else signal.SIGSTOP)
    start = time.monotonic()
    try:
        while True:
            group.all_reduce(x)
            boundary(group)
    except CollectiveError as error:
        took = time.monotonic() - start
        group.close()
        return str(error.root), took


def bits_case(world: int, delivery: str) -> str:
    """All ranks agree with the CPU kernel."""
    counts = run_team(world, bits, delivery)
    return f"{counts[0]} operations"


def gone_case(world: int, how: str, word: str, delivery: str = "pull") -> str:
    """Every survivor names the gone rank, with one root, in time."""
    team = Team(world, survive, how, delivery)
    try:
        found = team.results(range(world - 1), 60)
    finally:
        team.stop()
    roots = {text for text, _ in found.values()}
    slowest = max(took for _, took in found.values())
    limit = 2.0 if how == "killed" else 3.5
    assert len(roots) == 1, roots
    root = roots.pop()
    assert word in root and f"rank {world - 1}" in root, root
    assert slowest < limit, f"{slowest:.2f} s"
    return f"{root}; slowest after {slowest:.2f} s"


def main() -> int:
    """Run the cases; returns the exit code."""
    options = argparse.ArgumentParser()
    options.add_argument("--ranks", type=int, default=2)
    world = options.parse_args().ranks
    count = torch.cuda.device_count()
    if not count:
        print("FAIL no CUDA device: torch sees none")
        return 1
    print(
        f"# {world} ranks on {count} x {torch.cuda.get_device_name(0)}, torch {torch.__version__}"
    )
    told: tuple[tuple[str, Callable[..., str], tuple[Any, ...]], ...] = (
        ("bits, pull", bits_case, ("pull",)),
        ("bits, push", bits_case, ("push",)),
        ("bits, queued", bits_case, ("queued",)),
        ("a killed rank", gone_case, ("killed", "dead")),
        ("a killed rank, queued", gone_case, ("killed", "dead", "queued")),
        ("a stopped rank", gone_case, ("stopped", "frozen")),
    )
    failed = 0
    for name, case, arguments in told:
        start = time.monotonic()
        try:
            words = case(world, *arguments)
            print(f"PASS {world} ranks, {name}: {words} ({time.monotonic() - start:.1f} s)")
        except (AssertionError, RuntimeError) as error:
            failed += 1
            print(f"FAIL {world} ranks, {name}: {error}")
        sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
