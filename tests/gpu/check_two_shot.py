"""Two-shot and reduce-scatter on one GPU: bits, graphs, faults. One JSON line a case.

Run from the checkout: `python tests/gpu/check_two_shot.py [WORD]`. Exits 1 on a failed case.
"""

import random
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import torch

from tests.gpu.case import Case, run_cases, want
from tests.gpu.check_one_gpu import capture, roots
from tests.gpu.one_gpu import DEVICE, Ranks
from tests.gpu.values import raw, summed, values
from tetraspark.collectives.algorithm import Algorithm

ONE, TWO = Algorithm
BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32
MAX = 2 << 20
SETTINGS: dict[str, Any] = {
    "max_reduce_bytes": 1 << 20,
    "max_gather_bytes": 1 << 16,
    "max_two_shot_bytes": MAX,
    "late_limit_s": 15.0,
}
SIZES = (16, 48, 4112, 61440, 245760 + 16, 1 << 20, MAX)


def reduce_bits(world: int, lanes: int, delivery: str) -> None:
    """Bit-equal to the CPU kernel, so to one-shot, over dtypes and sizes, in and out of place."""
    ranks = Ranks(world, lanes=lanes, delivery=delivery, **SETTINGS)
    try:
        for seed, nbytes in enumerate(SIZES):
            for dtype in (BF16, FP16, FP32):
                shape = (nbytes // dtype.itemsize,)
                inputs = [values(seed * 64 + rank, shape, dtype) for rank in range(world)]
                wanted = summed(inputs)
                for place in ("in", "out"):
                    xs = [one.to(DEVICE) for one in inputs]
                    outs = [x if place == "in" else torch.full_like(x, 7.0) for x in xs]
                    torch.cuda.synchronize()
                    ranks.each(lambda rank, group: group.all_reduce(xs[rank], outs[rank], TWO))  # noqa: B023
                    ranks.succeed()
                    words = f"{dtype} {nbytes} bytes, {place} of place"
                    want(all(raw(out) == wanted for out in outs), words)
    finally:
        ranks.close()


SHAPES = (((96, 256), 0), ((9, 64), 0), ((5, 48), -1), ((1, 8), 0), ((2, 3, 160), -1))


def scatter_bits(world: int, lanes: int, delivery: str) -> None:
    """Every rank's part is that part of the sum: unequal and empty parts too."""
    ranks = Ranks(world, lanes=lanes, delivery=delivery, **SETTINGS)
    try:
        for seed, (shape, dim) in enumerate(SHAPES):
            inputs = [values(seed * 64 + rank, shape, BF16) for rank in range(world)]
            xs = [one.to(DEVICE) for one in inputs]
            torch.cuda.synchronize()
            parts = ranks.each(lambda rank, group: group.reduce_scatter(xs[rank], dim))  # noqa: B023
            ranks.succeed()
            whole = torch.frombuffer(bytearray(summed(inputs)), dtype=BF16).reshape(shape)
            want(raw(torch.cat([one.cpu() for one in parts], dim)) == raw(whole), f"{shape} {dim}")
    finally:
        ranks.close()


def graphs(world: int, lanes: int, start: int) -> None:
    """Graphs of both algorithms and of scatters, in random agreed orders, eager calls between."""
    ranks = Ranks(world, lanes=lanes, start_sequence=start, **SETTINGS)
    try:
        xs = [torch.zeros(240, 1024, dtype=BF16, device=DEVICE) for _ in range(world)]
        torch.cuda.synchronize()
        made = [
            capture(ranks, lambda rank, group: (group.all_reduce(xs[rank], algorithm=TWO),)),
            capture(ranks, lambda rank, group: (group.all_reduce(xs[rank], algorithm=ONE),)),
            capture(ranks, lambda rank, group: (group.reduce_scatter(xs[rank]),)),
        ]
        order = random.Random(3)
        for replay in range(40):
            fresh = [values(replay * 16 + rank, (240, 1024), BF16) for rank in range(world)]
            for x, value in zip(xs, fresh, strict=True):
                x.copy_(value)
            torch.cuda.synchronize()
            turn = [order.randrange(3) for _ in range(4)]
            ranks.each(lambda rank, _: [made[i][0][rank].replay() for i in turn])  # noqa: B023
            eager = ranks.each(lambda rank, group: group.all_reduce(xs[rank], algorithm=TWO))
            ranks.succeed()
            wanted = summed(fresh)
            seen = [(f"graph {i}", [one[0] for one in made[i][1]]) for i in set(turn) - {2}]
            for name, outs in [*seen, ("eager", eager)]:
                want(all(raw(out) == wanted for out in outs), f"replay {replay}, {name}")
            if 2 in turn:
                parts = [one[0].cpu() for one in made[2][1]]
                want(raw(torch.cat(parts)) == wanted, f"replay {replay}, scatter")
        if start:
            want(ranks.groups[0].state()["sequence"] < start, "the sequence did not wrap")
    finally:
        ranks.close()


def mismatch() -> None:
    """A rank that goes the other way is an error on all, with both ways named."""
    ranks = Ranks(3, lanes=2, **SETTINGS)
    try:
        x = torch.ones(4096, dtype=BF16, device=DEVICE)
        outs = [torch.full_like(x, 7.0) for _ in range(3)]
        torch.cuda.synchronize()
        ranks.each(lambda rank, group: group.all_reduce(x, outs[rank], TWO if rank else ONE))
        roots(ranks.finish(), ("mismatch", "two_shot_reduce bf16", "all_reduce bf16"))
        want(all(bool((out == 7.0).all()) for out in outs), "an output was written")
    finally:
        ranks.close()


def never_arrives() -> None:
    """A rank that never comes is named by all, soon after the limit."""
    ranks = Ranks(4, lanes=2, **(SETTINGS | {"late_limit_s": 1.0}))
    try:
        x = torch.ones(1 << 18, dtype=BF16, device=DEVICE)
        torch.cuda.synchronize()
        ranks.each(lambda rank, group: None if rank == 2 else group.all_reduce(x, algorithm=TWO))
        start = time.monotonic()
        roots(ranks.finish(), ("late", "rank 2"))
        want(time.monotonic() - start < 3.0, f"{time.monotonic() - start:.1f} s")
    finally:
        ranks.close()


def cases() -> list[Case]:
    """Return every case by name."""
    found: list[Case] = []
    for world, lanes, way in ((2, 4, "pull"), (4, 4, "pull"), (3, 2, "push"), (8, 1, "pull")):
        name = f"{world} ranks, {lanes} lanes, {way}"
        found.append((f"two-shot bits, {name}", partial(reduce_bits, world, lanes, way)))
        found.append((f"reduce-scatter bits, {name}", partial(scatter_bits, world, lanes, way)))
    found.append(("graphs, 2 ranks", partial(graphs, 2, 4, 0)))
    found.append(("graphs across 2**32, 4 ranks", partial(graphs, 4, 2, (1 << 32) - 60)))
    return [*found, ("mismatch of the algorithm", mismatch), ("never arrives", never_arrives)]


if __name__ == "__main__":
    sys.exit(run_cases(cases(), sys.argv[1:]))
