"""The prefill split on a GPU: its bits beside the unsplit step, and its time.

Run: `python tests/gpu/indexer_split.py [--device cpu]`; prints one JSON document. The engine's own
block code runs from its source (`engine_source.py`), the plugin's split around it; scores and top-k
are stand-ins (`indexer_kernels.py`), so times are those of a stand-in, and only their ratio and the
equality of bits say something about the split.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

import torch

from tests.engine.lockstep import in_lockstep
from tests.gpu.indexer_batch import BUDGET, TOPK, Engine, batch
from tests.gpu.indexer_rows import dependence
from tetraspark.engine import prefill_split
from tetraspark.engine.prefill_scope import SCOPE, Scope

WORLD, REPEATS, WARM = 4, 11, 2
GOAL = 0.28

prefill_split._first_split = False  # no receipt inside the document


@dataclass(frozen=True)
class Sizes:
    """What is compared and timed: rows, columns, and the requests of the ragged batch."""

    rows: int
    columns: tuple[int, ...]
    ragged: tuple[tuple[int, int], ...]


SIZES = {
    "cuda": Sizes(
        4096,
        (32_768, 65_536, 131_072, 262_144),
        ((40_000, 1500), (0, 0), (33_000, 0), (70_001, 900), (513, 130), (100_003, 1566)),
    ),
    "cpu": Sizes(140, (200,), ((150, 80), (0, 0), (40, 0), (90, 60))),
}

NAMES = ("full top-k", "source's top-k", "consumer's top-k", "block ids")


def compare(device: str, sizes: Sizes) -> Iterator[dict[str, Any]]:
    """Compare split with unsplit steps, as tensors, down to the smallest tiles."""
    for dtype in (torch.float32, torch.bfloat16):
        for ties in (False, True):
            data, kv = batch(sizes.ragged, device, ties)
            wanted = Engine(device, dtype).layers(data, kv)
            for budget in (BUDGET, sizes.rows * 256):
                engine = Engine(device, dtype, budget)
                for world in (1, 2, 3, 4):
                    results, sent = in_lockstep(world, lambda: engine.layers(data, kv))  # noqa: B023
                    yield {
                        "dtype": str(dtype), "ties": ties, "world": world, "budget": budget,
                        "tile_rows": max(rows for rows, _ in engine.logits.tiles),
                        "int32_only": all(one.dtype == torch.int32 for one in sent),
                        "differing_rows": differing(results, wanted, same_order=True),
                        "differing_sets": differing(results, wanted, same_order=False),
                    }  # fmt: skip


def differing(results: Any, wanted: Any, *, same_order: bool) -> dict[str, int]:
    """Return how many rows of all ranks differ, in each of what the layers return."""
    found = dict.fromkeys(NAMES, 0)
    for result in results:
        for name, one, other in zip(NAMES, result, wanted, strict=True):
            if not same_order:
                one, other = one.sort(1).values, other.sort(1).values
            found[name] += int((one != other).any(1).sum())
    return found


class Copies:
    """A group whose gather is a copy: each rank's payload read and written on this device."""

    world_size, rank_in_group = WORLD, 0

    def all_gather(self, input_: torch.Tensor, dim: int = -1) -> torch.Tensor:
        return torch.cat([input_] * self.world_size)


def timed(work: Callable[[], object], device: str) -> list[float]:
    """Return milliseconds of each call, by CUDA events or the clock."""
    found = []
    for repeat in range(REPEATS + WARM):
        if device == "cuda":
            before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            before.record()
            work()
            after.record()
            after.synchronize()
            spent = before.elapsed_time(after)
        else:
            begun = time.perf_counter()
            work()
            spent = (time.perf_counter() - begun) * 1000
        if repeat >= WARM:
            found.append(spent)
    return found


def times(device: str, sizes: Sizes) -> Iterator[dict[str, Any]]:
    """Time a full top-k layer of all rows, and rank 0's share of it with the gather."""
    engine = Engine(device, torch.float32)
    for columns in sizes.columns:
        data, kv = batch(((columns, sizes.rows),), device)
        out = data.empty_selection(TOPK)

        def layer(data: Any = data, kv: Any = kv, out: torch.Tensor = out) -> None:
            prefill_split.around_full_topk(engine.names["dense_prefill_topk"], data, kv, out=out)

        whole = timed(layer, device)
        token = SCOPE.set(Scope(Copies(), 1, columns))
        try:
            share = timed(layer, device)
        finally:
            SCOPE.reset(token)
        ratio = statistics.median(share) / statistics.median(whole)
        yield {
            "columns": columns, "rows": sizes.rows, "world": WORLD,
            "unsplit_ms": statistics.median(whole), "share_ms": statistics.median(share),
            "ratio": ratio, "within_goal": ratio <= GOAL,
            "unsplit_range_ms": [min(whole), max(whole)],
            "share_range_ms": [min(share), max(share)],
        }  # fmt: skip


def main() -> int:
    """Print the document; returns 1 when a split step differs from the unsplit one."""
    options = argparse.ArgumentParser()
    options.add_argument("--device", choices=tuple(SIZES), default="cuda")
    device = options.parse_args().device
    if device == "cuda" and not torch.cuda.is_available():
        print("no GPU here; --device cpu compares with small sizes", file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    sizes = SIZES[device]
    compared = list(compare(device, sizes))
    document = {
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "torch": torch.__version__,
        "kernels": "stand-ins for DeepGEMM and top-k v2; the engine's own block code",
        "repeats": REPEATS,
        "goal": GOAL,
        "compared": compared,
        "row_dependence": list(dependence(device, sizes.columns[0], sizes.rows)),
        "times": list(times(device, sizes)),
    }
    print(json.dumps(document, indent=1))
    differing = [one for one in compared if any(one["differing_rows"].values())]
    return 1 if differing or not all(one["int32_only"] for one in compared) else 0


if __name__ == "__main__":
    sys.exit(main())
