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
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

import torch

from tests.engine.lockstep import in_lockstep
from tests.gpu.engine_source import PrefillData, load
from tests.gpu.indexer_kernels import DIM, GROUP_ROWS, HEADS, Logits, topk_ragged
from tetraspark.engine import local_blocks, prefill_split
from tetraspark.engine.prefill_scope import SCOPE, Scope

TOPK, TOPK_BLOCKS, BLOCK, BUDGET = 512, 2048, 8, 2 << 30
WORLD, REPEATS, WARM = 4, 11, 2
GOAL = 0.28

prefill_split._first_split = False  # no receipt inside the document


@dataclass(frozen=True)
class Sizes:
    """What is compared and timed: rows, columns, and the requests of the ragged batch."""

    rows: int
    columns: tuple[int, ...]
    ragged: tuple[tuple[int, int], ...]
    heights: tuple[int, ...]


SIZES = {
    "cuda": Sizes(
        4096,
        (32_768, 65_536, 131_072, 262_144),
        ((40_000, 1500), (0, 0), (33_000, 0), (70_001, 900), (513, 130), (100_003, 1566)),
        (4, 8, 16, 32, 64, 100, 128, 200, 400, 800, 1024, 2048, 4096),
    ),
    "cpu": Sizes(140, (200,), ((150, 80), (0, 0), (40, 0), (90, 60)), (4, 8, 100, 140)),
}


def batch(requests: tuple[tuple[int, int], ...], device: str, ties: bool = False) -> Any:
    """Return (`PrefillData`, keys): random operands, or few integers so that scores are equal."""
    generator = torch.Generator(device).manual_seed(0)
    rows, columns = sum(n for _, n in requests), sum(length for length, _ in requests)

    def values(*shape: int) -> torch.Tensor:
        made = torch.randn(shape, generator=generator, device=device)
        if ties:
            made = (made > 1.5).float()
        return (made.round() if device == "cpu" else made).to(torch.bfloat16)

    starts, lens, first = [], [], 0
    for length, count in requests:
        starts += [first] * count
        lens += list(range(length - count + 1, length + 1))
        first += length
    data = PrefillData(
        k_slots=torch.arange(columns, device=device),
        request_starts=torch.tensor(starts, dtype=torch.int32, device=device),
        lens_per_request=[length for length, _ in requests],
        rows_per_request=[count for _, count in requests],
        compress_lens=torch.tensor(lens, dtype=torch.int32, device=device),
        q_fp4=values(rows, HEADS, DIM),
        q_sf=torch.zeros(rows, HEADS, dtype=torch.int32, device=device),
        weights=values(rows, HEADS).float(),
    )
    return data, (values(columns, DIM), torch.zeros(columns, dtype=torch.int32, device=device))


class Engine:
    """The three functions of the engine that a split wraps, over stand-in kernels."""

    def __init__(self, device: str, dtype: torch.dtype, budget: int = BUDGET) -> None:
        self.device = device
        self.logits = Logits(device)
        module = types.ModuleType("deep_gemm")
        vars(module)["fp8_fp4_mqa_logits"] = self.logits.fp8_fp4_mqa_logits
        sys.modules["deep_gemm"] = module
        self.names = load(topk_ragged, dtype, budget)

    def layers(self, data: Any, kv: Any) -> tuple[torch.Tensor, ...]:
        """Run a full top-k, a source and a consumer; split where a scope is open."""
        full = data.empty_selection(TOPK)
        prefill_split.around_full_topk(self.names["dense_prefill_topk"], data, kv, out=full)
        selected, blocks = prefill_split.around_publish(
            self.names["_publish_prefill_blocks"],
            data=data, kv=kv, topk=TOPK, topk_blocks=TOPK_BLOCKS, block_size=BLOCK,
        )  # fmt: skip
        consumed = prefill_split.around_consume(
            self.names["_consume_prefill_blocks"],
            data=data, kv=kv, topk=TOPK, blocks=blocks, block_size=BLOCK,
        )  # fmt: skip
        return full, selected, consumed, local_blocks.all_rows(blocks)


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
                        "differing_rows": {
                            name: sum(
                                int((result[i] != wanted[i]).any(1).sum()) for result in results
                            )
                            for i, name in enumerate(NAMES)
                        },
                    }  # fmt: skip


def dependence(device: str, sizes: Sizes) -> Iterator[dict[str, Any]]:
    """Score the same rows in tiles of other heights and widths, and select from them."""
    shapes = [(sizes.columns[0], sizes.rows)]
    if device == "cuda":
        # Beyond 100,000 blocks of at most ten rows torch.topk is a sort: another algorithm.
        shapes.append((1 << 20, 16))
    for columns, count in shapes:
        for ties in (False, True):
            for found in differing_tiles(device, columns, count, sizes.heights, ties):
                yield {"columns": columns, "rows": count, "ties": ties, **found}


def differing_tiles(
    device: str, columns: int, count: int, heights: tuple[int, ...], ties: bool
) -> Iterator[dict[str, Any]]:
    """Yield each height whose tiles score or select otherwise than one tile of all rows."""
    data, kv = batch(((columns, count),), device, ties)
    engine = Engine(device, torch.float32)
    whole = score(engine, data, kv, slice(0, count), columns)
    for height in (height for height in heights if height <= count):
        for start in sorted({0, (count - height) // GROUP_ROWS * GROUP_ROWS}):
            rows = slice(start, start + height)
            for more in (0, 64, 4096):
                again = score(engine, data, kv, rows, columns + more)[:, :columns]
                differs = unequal(again, whole[rows])
                if differs:
                    yield {"what": "scores", "height": height, "wider": more, "differ": differs}
            for what, differs in selections(engine, data, whole, rows):
                if differs:
                    yield {"what": what, "height": height, "differ": differs}


def score(engine: Engine, data: Any, kv: Any, rows: slice, width: int) -> torch.Tensor:
    starts = data.request_starts[rows]
    logits = engine.logits.fp8_fp4_mqa_logits(
        (data.q_fp4[rows], None), kv, data.weights[rows], starts, starts, False, width,
        torch.float32,
    )  # fmt: skip
    seen = torch.arange(width, device=engine.device) < data.compress_lens[rows, None]
    return logits.masked_fill(~seen, -torch.inf)


def selections(
    engine: Engine, data: Any, whole: torch.Tensor, rows: slice
) -> Iterator[tuple[str, int]]:
    """Yield how many rows select otherwise when they are selected from without the others."""
    blocks_of, among = (
        engine.names[name] for name in ("select_candidate_block_ids", "topk_among_blocks")
    )
    lens = data.compress_lens
    all_blocks = blocks_of(whole, lens[:, None], TOPK_BLOCKS, BLOCK)
    yield (
        "block ids",
        unequal(blocks_of(whole[rows], lens[rows, None], TOPK_BLOCKS, BLOCK), all_blocks[rows]),
    )
    all_chosen = among(whole, lens, all_blocks, TOPK, BLOCK)
    yield (
        "top-k among blocks",
        unequal(among(whole[rows], lens[rows], all_blocks[rows], TOPK, BLOCK), all_chosen[rows]),
    )


def unequal(one: torch.Tensor, other: torch.Tensor) -> int:
    return int((one != other).any(1).sum())


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
        "row_dependence": list(dependence(device, sizes)),
        "times": list(times(device, sizes)),
    }
    print(json.dumps(document, indent=1))
    differing = [one for one in compared if any(one["differing_rows"].values())]
    return 1 if differing or not all(one["int32_only"] for one in compared) else 0


if __name__ == "__main__":
    sys.exit(main())
