"""Every case of the kernels that one GPU can show; one JSON line each.

Run from the checkout, with the package importable: `python tests/gpu/check_one_gpu.py [WORD]`;
a word keeps only the cases whose name contains it.
"""

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import torch

from tests.gpu.case import Wrong, run_cases, want
from tests.gpu.one_gpu import DEVICE, QUEUED, Ranks, seconds
from tests.gpu.values import raw, summed, values
from tetraspark.collectives import cuda_opening
from tetraspark.collectives.failure import CollectiveError, Kind

BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32
FLOATS = (BF16, FP16, FP32)
MAX = 1 << 20
SIZES = (16, 32, 48, 4112, 16384, 61440, 65536 + 16, 262144 + 48, MAX)
SMALL: dict[str, Any] = {
    "max_reduce_bytes": MAX,
    "max_gather_bytes": 1 << 18,
    "late_limit_s": 15.0,
}


def reduce_all(ranks: Ranks, inputs: list[torch.Tensor], how: str) -> list[bytes]:
    """Run one all-reduce on every rank and return each rank's bytes."""
    device = [one.to(DEVICE) for one in inputs]
    outs = [one if how == "in" else torch.full_like(one, float("nan")) for one in device]
    torch.cuda.synchronize()
    ranks.each(lambda rank, group: group.all_reduce(device[rank], outs[rank]))
    ranks.succeed()
    return [raw(out) for out in outs]


def reduce_bits(world: int, lanes: int, delivery: str = "pull") -> None:
    """Bit-equal to the CPU kernel over dtypes and sizes, in and out of place."""
    ranks = Ranks(world, lanes=lanes, delivery=delivery, **SMALL)
    try:
        for dtype in FLOATS:
            for seed, nbytes in enumerate(SIZES):
                shape = (nbytes // dtype.itemsize,)
                inputs = [values(seed * 64 + rank, shape, dtype) for rank in range(world)]
                wanted = summed(inputs)
                for how in ("in", "out"):
                    for rank, seen in enumerate(reduce_all(ranks, inputs, how)):
                        words = f"{dtype} {nbytes} bytes, {how} of place, rank {rank}"
                        want(seen == wanted, words)
    finally:
        ranks.close()


def special_values() -> None:
    """Infinities, overflow and subnormals are bit-equal; NaN is NaN in the same places."""
    ranks = Ranks(3, **SMALL)
    try:
        for dtype in FLOATS:
            limits = torch.finfo(dtype)
            odd = [limits.max, -limits.max, limits.tiny, limits.smallest_normal / 4, -0.0]
            odd += [float("inf"), 1.0, 0.0]
            inputs = [torch.tensor(odd[i:] + odd[:i], dtype=dtype) for i in (0, 1, 3)]
            for seen in reduce_all(ranks, inputs, "out"):
                want(seen == summed(inputs), f"{dtype} special values")
            inputs[1][2], inputs[0][3] = float("nan"), float("-inf")
            inputs[1][3] = float("inf")
            wanted = torch.stack([one.float() for one in inputs]).sum(0).to(dtype)
            for seen in reduce_all(ranks, inputs, "out"):
                found = torch.frombuffer(bytearray(seen), dtype=dtype)
                want(torch.equal(found.isnan(), wanted.isnan()), f"{dtype} places of NaN")
    finally:
        ranks.close()


GATHERS = (
    ((16, 512), BF16, 0, None),
    ((3, 5), BF16, 0, None),
    ((7,), torch.uint8, 0, None),
    ((4, 1000), FP32, -1, None),
    ((5, 3), BF16, -1, None),
    ((2, 3, 6), FP16, -1, None),
    ((3, 1), torch.int64, -1, None),
    ((9, 64), torch.float8_e4m3fn, -1, None),
    ((64, 2048), BF16, -1, None),
    ((64, None), BF16, -1, (2048, 1000)),
    ((4, None), BF16, -1, (8, 24)),
    ((4, None), BF16, -1, (3, 0)),
    ((1, None), FP32, -1, (1000, 4)),
    ((6, None), torch.uint8, -1, (5, 1)),
)


def gathers(world: int, lanes: int, delivery: str = "pull") -> None:
    """First and last dimension, every access width, unequal and empty shards."""
    ranks = Ranks(world, lanes=lanes, delivery=delivery, **SMALL)
    try:
        for shape, dtype, dim, pair in GATHERS:
            sizes = tuple((pair * 4)[:world]) if pair else None
            shards = []
            for rank in range(world):
                extents = tuple((sizes or (0,) * world)[rank] if n is None else n for n in shape)
                kind = FP32 if dtype is torch.float8_e4m3fn else dtype
                shards.append(values(rank, extents, kind).to(dtype))
            device = [one.to(DEVICE) for one in shards]
            torch.cuda.synchronize()
            seen = ranks.each(lambda rank, group: group.all_gather(device[rank], dim, sizes))  # noqa: B023
            ranks.succeed()
            bits = [one.view(torch.uint8) if dtype.itemsize == 1 else one for one in shards]
            wanted = raw(torch.cat(bits, dim))
            for rank, one in enumerate(seen):
                want(raw(one) == wanted, f"{shape} {dtype} dim {dim} sizes {sizes}, rank {rank}")
    finally:
        ranks.close()


def odd_addresses() -> None:
    """Unaligned, strided and overlapping tensors give the same bits."""
    ranks = Ranks(2, **SMALL)
    try:
        inputs = [values(rank, (64, 64), BF16) for rank in range(2)]
        wanted = summed(inputs)
        room = [torch.zeros(64 * 64 + 8, dtype=BF16, device=DEVICE) for _ in range(2)]
        for rank in range(2):
            room[rank][1:4097].copy_(inputs[rank].reshape(-1))
        torch.cuda.synchronize()
        seen = ranks.each(lambda rank, group: group.all_reduce(room[rank][1:4097]))
        ranks.succeed()
        want(all(raw(one) == wanted for one in seen), "unaligned input")
        columns = [one.t().contiguous().to(DEVICE).t() for one in inputs]
        torch.cuda.synchronize()
        seen = ranks.each(lambda rank, group: group.all_reduce(columns[rank]))
        ranks.succeed()
        want(all(raw(one) == wanted for one in seen), "strided input")
        for rank in range(2):
            room[rank][:4096].copy_(inputs[rank].reshape(-1))
        torch.cuda.synchronize()
        seen = ranks.each(
            lambda rank, group: group.all_reduce(room[rank][:4096], room[rank][8:4104])
        )
        ranks.succeed()
        want(all(raw(one) == wanted for one in seen), "overlapping output")
    finally:
        ranks.close()


def capture(ranks: Ranks, step: Callable[[int, Any], Any]) -> tuple[list[Any], list[Any]]:
    """Capture one graph a rank; returns the graphs and what each step returned."""
    graphs, kept = [], []
    for rank, group in enumerate(ranks.groups):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=ranks.streams[rank]):
            kept.append(step(rank, group))
        graphs.append(graph)
    return graphs, kept


def graphs(world: int, lanes: int, start_sequence: int = 0, replays: int = 150) -> None:
    """Several graphs of mixed operations, replayed in random agreed orders on fresh inputs."""
    ranks = Ranks(world, lanes=lanes, start_sequence=start_sequence, **SMALL)
    try:
        shapes = ((8, 64), (30, 1024), (240, 1024))
        xs = [[torch.zeros(s, dtype=BF16, device=DEVICE) for s in shapes] for _ in range(world)]
        torch.cuda.synchronize()

        def mixed(rank: int, group: Any) -> Any:
            one, two = xs[rank][0], xs[rank][1]
            return group.all_reduce(one), group.all_gather(one, -1), group.all_reduce(two)

        made = [
            capture(ranks, lambda rank, group: (group.all_reduce(xs[rank][1]),)),
            capture(ranks, lambda rank, group: (group.all_gather(xs[rank][0], 0),)),
            capture(ranks, lambda rank, group: (group.all_reduce(xs[rank][2]),)),
            capture(ranks, mixed),
        ]
        order = random.Random(5)
        for replay in range(replays):
            fresh = [
                [values(replay * 97 + rank * 7 + i, s, BF16) for i, s in enumerate(shapes)]
                for rank in range(world)
            ]
            for rank in range(world):
                for x, value in zip(xs[rank], fresh[rank], strict=True):
                    x.copy_(value)
            torch.cuda.synchronize()
            turn = [order.randrange(len(made)) for _ in range(3)]
            ranks.each(lambda rank, _: [made[i][0][rank].replay() for i in turn])  # noqa: B023
            if replay % 10 == 0:  # eager calls between replays share the same epoch
                extra = ranks.each(lambda rank, group: group.all_reduce(xs[rank][0]))
            ranks.succeed()
            sums = [summed([fresh[rank][i] for rank in range(world)]) for i in range(3)]
            first = torch.cat([fresh[rank][0] for rank in range(world)])
            last = torch.cat([fresh[rank][0] for rank in range(world)], -1)
            wanted = [[sums[1]], [raw(first)], [sums[2]], [sums[0], raw(last), sums[1]]]
            for i in set(turn):
                for rank in range(world):
                    got = [raw(one) for one in made[i][1][rank]]
                    want(got == wanted[i], f"replay {replay}, graph {i}, rank {rank}")
            if replay % 10 == 0:
                want(all(raw(one) == sums[0] for one in extra), f"eager at replay {replay}")
        sequence = ranks.groups[0].state()["sequence"]
        if start_sequence:
            want(sequence < start_sequence, f"the sequence {sequence} did not wrap")
    finally:
        ranks.close()


def roots(errors: list[CollectiveError | None], words: tuple[str, ...]) -> str:
    """Want the same root on every rank, with all of `words` in it; return it."""
    want(all(error is not None for error in errors), f"errors {errors}")
    texts = {str(error.root) for error in errors if error is not None}
    want(len(texts) == 1, f"different roots: {texts}")
    text = texts.pop()
    for word in words:
        want(word in text, f"{word!r} is not in {text!r}")
    return text


def mismatch(kind: str) -> None:
    """Ranks that differ are told so, both sides named, and no sum is written."""
    world = 3
    # A relay's other stripes carry no shape: they may be summed before the first one's is seen.
    single = kind == "large" or (QUEUED and kind == "shape")
    ranks = Ranks(world, lanes=1 if single else 2, **SMALL)
    calls: dict[str, tuple[Any, Any, tuple[str, ...]]] = {
        "dtype": (((64,), BF16), ((64,), FP16), ("bf16 [64]", "fp16 [64]")),
        "size": (((64,), BF16), ((128,), BF16), ("bf16 [64]", "bf16 [128]")),
        "shape": (((8, 16), BF16), ((16, 8), BF16), ("[8, 16]", "[16, 8]")),
        "large": (((65536,), BF16), ((256, 256), BF16), ("bf16 [65536]", "bf16 [256, 256]")),
        "op": (((64,), BF16), ((64,), BF16), ("all_reduce bf16 [64]", "gather_first bf16 [64]")),
    }
    usual, odd, words = calls[kind]
    try:
        epochs = [group._found.launcher.device_state().sequence for group in ranks.groups]
        told = [odd if rank == world - 1 else usual for rank in range(world)]
        inputs = [torch.ones(shape, dtype=dtype, device=DEVICE) for shape, dtype in told]
        outs = [torch.full_like(one, 7.0) for one in inputs]
        torch.cuda.synchronize()

        def step(rank: int, group: Any) -> None:
            if kind == "op" and rank == world - 1:
                group.all_gather(inputs[rank], 0)
            else:
                group.all_reduce(inputs[rank], outs[rank])

        ranks.each(step)
        text = roots(ranks.finish(), ("mismatch", *words))
        print(f"       {text}")
        want(all(bool((out == 7.0).all()) for out in outs), "an output was written")
        later = [group._found.launcher.device_state() for group in ranks.groups]
        want([one.sequence for one in later] == epochs, "the epoch moved")
        want(all(one.poison for one in later), "not poisoned")
    finally:
        ranks.close()


def poisoned_graph() -> None:
    """After a failure queued graphs end at once, write nothing and leave the epoch."""
    ranks = Ranks(2, **(SMALL | {"late_limit_s": 0.5}))
    try:
        xs = [torch.ones(4096, dtype=BF16, device=DEVICE) for _ in range(2)]
        outs = [torch.zeros_like(one) for one in xs]
        torch.cuda.synchronize()
        made, _ = capture(ranks, lambda rank, group: group.all_reduce(xs[rank], outs[rank]))
        ranks.each(lambda rank, _: made[rank].replay())
        ranks.succeed()
        want(all(bool((out == 2.0).all()) for out in outs), "the first replay")
        epoch = ranks.groups[0]._found.launcher.device_state().sequence
        outs[0].fill_(5.0)
        torch.cuda.synchronize()
        with torch.cuda.stream(ranks.streams[0]):
            for _ in range(20):
                made[0].replay()
        took = seconds(lambda: roots(ranks.finish(), ("late", "rank 1")))
        want(took < 2.5, f"{took:.1f} s")
        want(seconds(lambda: ranks.streams[0].synchronize()) < 0.5, "queued replays went on")
        want(bool((outs[0] == 5.0).all()), "a poisoned launch wrote")
        state = ranks.groups[0]._found.launcher.device_state()
        want(state.sequence == epoch, "the epoch moved")
        try:
            ranks.groups[0].all_reduce(xs[0])
        except CollectiveError:
            return
        raise Wrong("a call after the failure was taken")
    finally:
        ranks.close()


def never_arrives(count: int) -> None:
    """A rank that never comes: all name it within two seconds of the limit, nothing hangs."""
    ranks = Ranks(4, **(SMALL | {"late_limit_s": 1.0}))
    try:
        xs = [torch.ones(count, dtype=BF16, device=DEVICE) for _ in range(4)]
        torch.cuda.synchronize()
        ranks.each(lambda rank, group: None if rank == 2 else group.all_reduce(xs[rank]))
        start = time.monotonic()
        text = roots(ranks.finish(), ("late", "rank 2", f"{2 * count} bytes", "sequence"))
        took = time.monotonic() - start
        print(f"       {text}; all raised after {took:.2f} s")
        want(took < 3.0, f"{took:.1f} s")
    finally:
        ranks.close()


def unwatched_sync() -> None:
    """An engine that synchronizes instead of asking is freed too, by the thread."""
    ranks = Ranks(2, **(SMALL | {"late_limit_s": 0.5}))
    try:
        x = torch.ones(4096, dtype=BF16, device=DEVICE)
        torch.cuda.synchronize()
        with torch.cuda.stream(ranks.streams[0]):
            ranks.groups[0].all_reduce(x)
        took = seconds(torch.cuda.synchronize)
        want(took < 2.5, f"the device was waited for {took:.1f} s")
        roots(ranks.finish(), ("late", "rank 1"))
    finally:
        ranks.close()


def device_deadline() -> None:
    """With every host silent the GPU's own clock ends the wait, and the boundary says so."""
    margin, cuda_opening.DEADLINE_MARGIN_S = cuda_opening.DEADLINE_MARGIN_S, 0.5
    try:
        ranks = Ranks(2, **(SMALL | {"late_limit_s": 1.0}))
    finally:
        cuda_opening.DEADLINE_MARGIN_S = margin
    try:
        for group in ranks.groups:
            group._watch.stop()
        x = torch.ones(4096, dtype=BF16, device=DEVICE)
        torch.cuda.synchronize()
        with torch.cuda.stream(ranks.streams[0]):
            ranks.groups[0].all_reduce(x)
        took = seconds(torch.cuda.synchronize)
        want(1.4 < took < 2.5, f"the wait took {took:.2f} s, the deadline was 1.5 s")
        text = roots(ranks.finish(), ("late", "rank 1", "the GPU waited 1.5 s"))
        print(f"       {text}")
    finally:
        ranks.close()


def host_abort() -> None:
    """One host's verdict ends every rank's kernels and is the root everywhere."""
    ranks = Ranks(3, **SMALL)
    try:
        x = torch.ones(4096, dtype=BF16, device=DEVICE)
        torch.cuda.synchronize()
        with torch.cuda.stream(ranks.streams[1]):
            ranks.groups[1].all_reduce(x)
        time.sleep(0.1)
        watch = ranks.groups[0]._watch
        with watch.lock:
            ranks.groups[0]._found.link.supervisor.fail(Kind.DEAD, 2, -1, "said so by a test")
        took = seconds(torch.cuda.synchronize)
        want(took < 0.5, f"the kernel ran on for {took:.2f} s")
        roots(ranks.finish(), ("dead", "rank 2", "said so by a test"))
    finally:
        ranks.close()


def boundary_deadline() -> None:
    """A step that is not over at the deadline raises and names this rank."""
    ranks = Ranks(2, **SMALL)
    try:
        took = 0.0
        start = time.monotonic()
        try:
            ranks.groups[0].check(0.3, lambda: False)
        except CollectiveError as error:
            took = time.monotonic() - start
            want("not ready 0.3 s" in str(error), str(error))
        want(0.3 < took < 1.5, f"{took:.2f} s")
        roots(ranks.finish(), ("late", "rank 0", "not ready"))
    finally:
        ranks.close()


def close_while_waiting() -> None:
    """Closing with a kernel in flight and graphs alive ends, and leaves nothing behind."""
    before = {path.name for path in Path("/dev/shm").iterdir()}
    ranks = Ranks(2, **SMALL)
    xs = [torch.ones(4096, dtype=BF16, device=DEVICE) for _ in range(2)]
    torch.cuda.synchronize()
    made, _ = capture(ranks, lambda rank, group: group.all_reduce(xs[rank]))
    with torch.cuda.stream(ranks.streams[0]):
        made[0].replay()
        ranks.groups[0].all_reduce(xs[0])
    took = seconds(ranks.close)
    want(took < 8, f"{took:.1f} s")
    del made
    want(seconds(torch.cuda.synchronize) < 0.5, "a kernel was left running")
    left = {path.name for path in Path("/dev/shm").iterdir()} - before
    want(not left, f"left in /dev/shm: {left}")


def cases() -> list[tuple[str, Callable[[], None]]]:
    """Return every case by name."""
    found: list[tuple[str, Callable[[], None]]] = []

    def add(name: str, call: Callable[..., None], *arguments: Any) -> None:
        found.append((name, lambda: call(*arguments)))

    for world in range(2, 9):
        lanes = (world % 4) + 1
        add(f"all-reduce bits, {world} ranks, {lanes} lanes", reduce_bits, world, lanes)
    add("all-reduce bits, 2 ranks, 4 lanes", reduce_bits, 2, 4)
    add("all-reduce bits, 3 ranks, push", reduce_bits, 3, 2, "push")
    add("special values", special_values)
    for world, lanes, way in ((2, 1, "pull"), (4, 4, "pull"), (8, 2, "pull"), (3, 3, "push")):
        add(f"gathers, {world} ranks, {lanes} lanes, {way}", gathers, world, lanes, way)
    add("odd addresses", odd_addresses)
    add("graphs, 2 ranks, 4 lanes", graphs, 2, 4)
    add("graphs, 4 ranks, 1 lane", graphs, 4, 1)
    add("graphs, 8 ranks, 2 lanes", graphs, 8, 2, 0, 60)
    add("graphs across 2**32, 3 ranks", graphs, 3, 4, (1 << 32) - 40, 60)
    for kind in ("dtype", "size", "shape", "op", "large"):
        add(f"mismatch of {kind}", mismatch, kind)
    add("never arrives", never_arrives, 4096)
    add("never arrives, split launch", never_arrives, 1 << 17)
    add("unwatched synchronize", unwatched_sync)
    add("device deadline", device_deadline)
    add("host abort", host_abort)
    add("boundary deadline", boundary_deadline)
    add("poisoned graph", poisoned_graph)
    add("close while waiting", close_while_waiting)
    return found


if __name__ == "__main__":
    sys.exit(run_cases(cases(), sys.argv[1:]))
