"""All-reduce of bf16 between GPUs of one host under CUDA graphs: ours, NCCL, NCCL with P2P off.

One process a GPU. The like-for-like rival of a collective through host memory is NCCL with
NCCL_P2P_DISABLE=1: both cross PCIe. Times are us a call: the median over replays of a graph of
calls, then the largest over ranks. Every row is checked before it is timed.

Run: `python tests/gpu/bench_two_gpus.py [--gpus 2] [--json FILE]`. Exits 1 on a wrong result, 2
with fewer GPUs than asked.
"""

import argparse
import json
import os
import platform
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import torch
import torch.distributed as dist

from tests.gpu.processes import exchange, run_team
from tests.gpu.values import raw, summed, values
from tetraspark.collectives.cuda_events import new_event
from tetraspark.collectives.cuda_group import CudaGroup
from tetraspark.collectives.settings import Settings

SIZES = (4096, 16384, 32768, 49152, 61440, 131072, 262144, 491520, 983040, 2097152)
CALLS, REPLAYS, WARM = 50, 15, 4
BOUNDS = {16384: 0.45, 61440: 0.5, 491520: 0.7, 983040: 0.7}
"""Largest ratio to NCCL with P2P off that the project asks for, at some sizes."""
WAYS = {
    "ours": {},
    "nccl": {},
    "nccl-p2p-off": {"NCCL_P2P_DISABLE": "1"},
}


def timed(step: Callable[[], object]) -> float:
    """Return this rank's median time of one call, in us."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            step()
    found = []
    for replay in range(REPLAYS + WARM):
        before, after = (new_event(timing=True) for _ in range(2))
        torch.cuda.synchronize()
        exchange(b"")
        before.record()
        graph.replay()
        after.record()
        after.synchronize()
        if replay >= WARM:
            found.append(before.elapsed_time(after) * 1000 / CALLS)
    return float(statistics.median(found))


def right(seen: torch.Tensor, shards: list[torch.Tensor], *, exact: bool) -> bool:
    """Compare with the fixed-order sum: bits for ours, 1 % of the norm for a rival."""
    if exact:
        return raw(seen) == summed(shards)
    wanted = torch.stack([one.double() for one in shards]).sum(0)
    return float((seen.cpu().double() - wanted).norm()) <= 0.01 * float(wanted.norm())


def measure(rank: int, world: int, device: torch.device, way: str, lanes: int) -> list[Any]:
    """Return (bytes, us, correct) of every size."""
    group: CudaGroup | None = None
    if way == "ours":
        settings = Settings(lanes=lanes, max_gather_bytes=1 << 16, late_limit_s=60.0)
        group = CudaGroup.open(rank, world, exchange, device, settings)

    def reduce(x: torch.Tensor) -> None:
        if group is not None:
            group.all_reduce(x, x)
        else:
            dist.all_reduce(x)

    rows = []
    for nbytes in SIZES:
        shards = [values(nbytes + r, (nbytes // 2,), torch.bfloat16) for r in range(world)]
        x = shards[rank].to(device)
        reduce(x)
        torch.cuda.synchronize()
        correct = right(x, shards, exact=group is not None)
        x.copy_(shards[rank])
        rows.append((nbytes, timed(lambda: reduce(x)), correct))  # noqa: B023
        if group is not None:
            group.check(1.0)
    if group is not None:
        exchange(b"")
        group.close()
    return rows


def nccl_version() -> str:
    """Return the version of torch's NCCL."""
    return ".".join(map(str, torch.cuda.nccl.version()))


def header(world: int, lanes: int) -> dict[str, Any]:
    """Return what a reader needs to repeat the run."""
    return {
        "what": "all-reduce, bf16, in place, one process a GPU, CUDA graphs",
        "gpus": [torch.cuda.get_device_name(i) for i in range(world)],
        "peer_access": torch.cuda.can_device_access_peer(0, 1),
        "cpu": platform.processor() or platform.machine(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "nccl": nccl_version(),
        "nccl_environment": {k: v for k, v in os.environ.items() if k.startswith("NCCL_")},
        "lanes": lanes,
        "calls_a_graph": CALLS,
        "replays": REPLAYS,
        "warm_up_replays": WARM,
        "unit": "us a call; median over replays, largest over ranks",
    }


def table(results: dict[str, list[list[Any]]]) -> tuple[list[dict[str, Any]], bool]:
    """Merge ranks and ways into rows; says whether all were right."""
    rows, all_right = [], True
    for index, nbytes in enumerate(SIZES):
        row: dict[str, Any] = {"bytes": nbytes}
        for way, ranks in results.items():
            row[way] = round(max(rank[index][1] for rank in ranks), 2)
            row[f"{way} correct"] = all(rank[index][2] for rank in ranks)
            all_right = all_right and row[f"{way} correct"]
        row["ratio to p2p-off"] = round(row["ours"] / row["nccl-p2p-off"], 3)
        row["bound"] = BOUNDS.get(nbytes)
        rows.append(row)
    return rows, all_right


def show(head: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """Print the self-describing table."""
    for name, value in head.items():
        print(f"# {name}: {value}")
    print("#   bytes     ours     nccl  p2p-off    ratio  bound  correct (ours nccl p2p-off)")
    for row in rows:
        marks = " ".join("yes" if row[f"{way} correct"] else "NO" for way in WAYS)
        cells = " ".join(f"{row[way]:8.2f}" for way in WAYS)
        bound = f"{row['bound']:.2f}" if row["bound"] else "    "
        print(f"{row['bytes']:9} {cells} {row['ratio to p2p-off']:8.3f}   {bound}  {marks}")


def main() -> int:
    """Run every way; returns the exit code."""
    options = argparse.ArgumentParser()
    options.add_argument("--gpus", type=int, default=2)
    options.add_argument("--lanes", type=int, default=4)
    options.add_argument("--json", type=Path)
    asked = options.parse_args()
    count = torch.cuda.device_count()
    if count < max(2, asked.gpus):
        print(
            f"FAIL this needs {max(2, asked.gpus)} GPUs, torch sees {count}: no table without them"
        )
        return 2
    results = {}
    for way, environment in WAYS.items():
        backend = "gloo" if way == "ours" else "cpu:gloo,cuda:nccl"
        results[way] = run_team(
            asked.gpus, measure, way, asked.lanes, backend=backend, environment=dict(environment)
        )
    rows, all_right = table(results)
    head = header(asked.gpus, asked.lanes)
    show(head, rows)
    if asked.json:
        asked.json.write_text(json.dumps(head | {"rows": rows}, indent=1))
    print("# every result right" if all_right else "# FAIL: wrong results")
    return 0 if all_right else 1


if __name__ == "__main__":
    sys.exit(main())
