"""Time all-reduce of CPU tensors against torch.distributed's gloo, in the same processes.

    python -m tests.collectives.compare_gloo [--world 4] [--kib 16 32 64]

Each round times one batch of ours, then one of gloo; the figures are medians over rounds of the
slowest rank's time. Lines starting with # describe the run. Results are compared bit by bit with
the fp32 sum in rank order. Exits 1 if a result is wrong.
"""

import argparse
import json
import os
import platform
import socket
import statistics
import sys
import time
from collections.abc import Callable

import torch
import torch.distributed
from torch.multiprocessing.spawn import start_processes

from tests.collectives.oracle import raw, reduced, shard
from tetraspark.collectives.group import Group

ROUNDS = 15
BATCH = 20
WARM_UP = 20


def everyone(data: object, world: int) -> list[object]:
    found: list[object] = [None] * world
    torch.distributed.all_gather_object(found, data)
    return found


def batch(call: Callable[[], object]) -> float:
    """Return microseconds a call, over one batch, started together."""
    meet: Callable[[], object] = torch.distributed.barrier
    meet()
    start = time.perf_counter()
    for _ in range(BATCH):
        call()
    return (time.perf_counter() - start) / BATCH * 1e6


def measure(rank: int, world: int, port: int, sizes: list[int]) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=world)

    def exchange(data: bytes) -> list[bytes]:
        return [one for one in everyone(data, world) if isinstance(one, bytes)]

    wrong = 0
    with Group.open(rank, world, exchange) as group:
        if rank == 0:
            print(f"# {world} ranks on {os.cpu_count()} cores, {platform.machine()}, bf16, CPU")
            print(f"# torch {torch.__version__}; medians of {ROUNDS} rounds of {BATCH}; us")
            print(f"# {'KiB':>6} {'ours':>8} {'p90':>8} {'gloo':>8} {'p90':>8} {'ratio':>6} wrong")
        for kib in sizes:
            wrong += compare(group, kib, rank, world)
        if rank == 0:
            print(f"# waits {json.dumps(group.state()['waits'])}")
    torch.distributed.destroy_process_group()
    sys.exit(1 if wrong else 0)


def compare(group: Group, kib: int, rank: int, world: int) -> int:
    tensor = shard(kib, rank, (kib * 512,))
    out, rival = torch.empty_like(tensor), torch.zeros_like(tensor)
    wanted = reduced([shard(kib, other, (kib * 512,)) for other in range(world)])
    calls: dict[str, Callable[[], object]] = {
        "ours": lambda: group.all_reduce(tensor, out),
        "gloo": lambda: torch.distributed.all_reduce(rival),
    }
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(WARM_UP):
            call()
    for _ in range(ROUNDS):
        for name, call in calls.items():
            slowest = [one for one in everyone(batch(call), world) if isinstance(one, float)]
            times[name].append(max(slowest))
    wrong = int(raw(out) != raw(wanted))
    if rank == 0:
        ours, gloo = (statistics.median(times[name]) for name in ("ours", "gloo"))
        tails = [statistics.quantiles(times[name], n=10)[8] for name in ("ours", "gloo")]
        figures = f"{ours:8.1f} {tails[0]:8.1f} {gloo:8.1f} {tails[1]:8.1f} {ours / gloo:6.3f}"
        print(f"  {kib:>6} {figures} {wrong:>5}", flush=True)
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description="all-reduce against gloo")
    parser.add_argument("--world", type=int, default=4)
    parser.add_argument("--kib", type=int, nargs="+", default=[16, 32, 64, 256, 1024])
    told = parser.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Untyped in torch.
    start: Callable[..., object] = start_processes
    start(measure, (told.world, port, told.kib), nprocs=told.world, start_method="spawn")


if __name__ == "__main__":
    main()
