"""Two-shot, the fused norm and the diet on one GPU, each beside what it would replace.

Every track is a graph of calls; tracks of one row are replayed in turn, so that drift of the
machine meets all of them. Times are us a call, medians over replays (with several ranks: of the
slowest rank). Ranks of one GPU share its link: a stand-in for several GPUs, no measurement of them.
"itself" is one rank of two whose peer is itself. One JSON line a row; ratios are to the first
track, medians of the ratios of neighbouring replays.

Run: `python tests/gpu/bench_beyond.py two-shot|fused|diet`. Exits 1 on a wrong result.
"""

import json
import statistics
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import torch

from tests.gpu.bench_one_gpu import Mirror
from tests.gpu.one_gpu import DEVICE, Ranks
from tests.gpu.unfused import add_norm, torch_norm
from tetraspark.collectives.algorithm import Algorithm
from tetraspark.collectives.cuda_events import new_event, new_stream
from tetraspark.collectives.cuda_launch import Form
from tetraspark.collectives.cuda_norms import epilogue
from tetraspark.collectives.cuda_source import Shape
from tetraspark.collectives.cuda_two_shot import gather_of
from tetraspark.collectives.flags import Dtype, Op
from tetraspark.collectives.requests import reduce_request

CALLS, REPLAYS, WARM = 30, 15, 3
SIZES = (61440, 245760, 491520, 983040, 2097152)
BF16 = torch.bfloat16
Steps = dict[str, Callable[[], object]]


def stream_now() -> int:
    """Return the current stream's handle."""
    return torch.cuda.current_stream().cuda_stream


def captured(step: Callable[[], object], stream: torch.cuda.Stream) -> torch.cuda.CUDAGraph:
    """Return a graph of calls."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(CALLS):
            step()
    return graph


def report(kind: str, nbytes: int, times: dict[str, list[float]], right: bool) -> int:
    """Print one row; returns 1 if it was wrong."""
    first = next(iter(times.values()))
    medians = {name: round(statistics.median(found), 2) for name, found in times.items()}
    ratios = {
        name: round(
            statistics.median(one / base for one, base in zip(found, first, strict=True)), 3
        )
        for name, found in times.items()
    }
    row = {"bench": kind, "bytes": nbytes, "right": right, "us": medians, "ratio": ratios}
    print(json.dumps(row), flush=True)
    return 0 if right else 1


def alone(steps: Steps, stream: torch.cuda.Stream) -> dict[str, list[float]]:
    """Time tracks of one stream in turn."""
    graphs = {name: captured(step, stream) for name, step in steps.items()}
    found: dict[str, list[float]] = {name: [] for name in steps}
    for replay in range(REPLAYS + WARM):
        for name, graph in graphs.items():
            before, after = (new_event(timing=True) for _ in range(2))
            with torch.cuda.stream(stream):
                before.record()
                graph.replay()
                after.record()
            after.synchronize()
            if replay >= WARM:
                found[name].append(before.elapsed_time(after) * 1000 / CALLS)
    return found


def together(ranks: Ranks, steps: list[Steps]) -> dict[str, list[float]]:
    """Time tracks of all ranks, each on its stream, in turn; the slowest rank counts."""
    graphs = [
        {name: captured(step, stream) for name, step in own.items()}
        for own, stream in zip(steps, ranks.streams, strict=True)
    ]
    found: dict[str, list[float]] = {name: [] for name in steps[0]}
    for replay in range(REPLAYS + WARM):
        for name, seen in found.items():
            pairs = [[new_event(timing=True) for _ in range(2)] for _ in graphs]
            torch.cuda.synchronize()
            for (before, after), own, stream in zip(pairs, graphs, ranks.streams, strict=True):
                with torch.cuda.stream(stream):
                    before.record()
                    own[name].replay()
                    after.record()
            ranks.succeed()
            if replay >= WARM:
                slowest = max(before.elapsed_time(after) for before, after in pairs)
                seen.append(slowest * 1000 / CALLS)
    return found


def two_shot_row(ranks: Ranks, nbytes: int) -> int:
    """Print one-shot beside two-shot at one size; returns 1 if their bits differ."""
    xs = [torch.randn(nbytes // 2, device=DEVICE).to(BF16) for _ in ranks.groups]
    names = ("one-shot", "two-shot", "two-shot split 2+8", "two-shot split 4+16")
    forms = (None, None, Form(2, 8), Form(4, 16))
    outs = [{name: torch.zeros_like(x) for name in names} for x in xs]

    def step(rank: int, name: str, form: Form | None) -> None:
        group = ranks.groups[rank]
        way = Algorithm.ONE_SHOT if name == "one-shot" else Algorithm.TWO_SHOT
        request, _, _ = group._requests.reduce(xs[rank], outs[rank][name], way)
        launcher = group._found.launcher
        launcher.launch(request, stream_now(), form)
        if way is Algorithm.TWO_SHOT:
            launcher.launch(gather_of(request, rank), stream_now(), form)

    torch.cuda.synchronize()
    steps: list[Steps] = [
        {name: partial(step, rank, name, form) for name, form in zip(names, forms, strict=True)}
        for rank in range(ranks.world)
    ]
    times = together(ranks, steps)
    one = outs[0]["one-shot"]
    right = all(torch.equal(out, one) for own in outs for out in own.values())
    return report(f"two-shot, {ranks.world} ranks", nbytes, times, right)


def two_shot() -> int:
    """Print one-shot beside two-shot with 4 and 2 ranks; returns the number of wrong rows."""
    wrong = 0
    for world in (4, 2):
        ranks = Ranks(
            world, lanes=4, max_reduce_bytes=2 << 20, max_two_shot_bytes=2 << 20, late_limit_s=10.0
        )
        try:
            wrong += sum(two_shot_row(ranks, nbytes) for nbytes in SIZES)
        finally:
            ranks.close()
    return wrong


class Layer:
    """Tensors of one all-reduce with its residual and norm: rows of 5120."""

    def __init__(self, rows: int) -> None:
        self.x, self.residual = (torch.randn(rows, 5120, device=DEVICE).to(BF16) for _ in range(2))
        self.weight = torch.randn(5120, device=DEVICE).to(BF16)
        self.total, self.normed, self.added = (torch.empty_like(self.x) for _ in range(3))

    def request(self, world: int, op: Op, out: torch.Tensor) -> Any:
        """Return the all-reduce into `out`."""
        request = reduce_request(world, Dtype.BF16, tuple(self.x.shape), self.x.nbytes, op)
        request.input, request.output = self.x.data_ptr(), out.data_ptr()
        return request

    def tracks(self, launcher: Any, world: int) -> Steps:
        """Return the fused kernel in several forms, what it replaces, and the sum alone."""
        told = (self.total, self.residual, self.weight, 1e-6)

        def reduce() -> None:
            launcher.launch(self.request(world, Op.ALL_REDUCE, self.total), stream_now())

        def fused(form: Form | None) -> None:
            request = self.request(world, Op.ALL_REDUCE_NORM, self.normed)
            after = epilogue(self.residual, self.added, self.weight, 1e-6)
            launcher.launch(request, stream_now(), form, after)

        def then(norm: Callable[[], object]) -> None:
            reduce()
            norm()

        return {
            "all-reduce, add-and-norm kernel": partial(then, partial(add_norm, launcher, *told)),
            "all-reduce, torch add, torch rms_norm": partial(then, partial(torch_norm, *told)),
            "fused": partial(fused, None),
            "fused whole": partial(fused, Form()),
            "fused split 2+8": partial(fused, Form(2, 8)),
            "fused split 2+16": partial(fused, Form(2, 16)),
            "fused split 4+32": partial(fused, Form(4, 32)),
            "all-reduce alone": reduce,
        }

    def right(self, launcher: Any) -> bool:
        """Say whether the last fused result has the bits of the separate kernels."""
        normed, added = add_norm(launcher, self.total, self.residual, self.weight, 1e-6)
        return torch.equal(normed, self.normed) and torch.equal(added, self.added)


def fused() -> int:
    """Print the fused norm beside separate kernels; returns the number of wrong rows."""
    wrong, stream = 0, new_stream(DEVICE)
    mirror = Mirror(4)
    for rows in (1, 6, 24, 48, 96, 204):
        layer = Layer(rows)
        layer.tracks(mirror.launcher, 2)["all-reduce, torch add, torch rms_norm"]()
        times = alone(layer.tracks(mirror.launcher, 2), stream)
        torch.cuda.synchronize()
        wrong += report("fused, itself", layer.x.nbytes, times, layer.right(mirror.launcher))
    ranks = Ranks(2, lanes=4, max_reduce_bytes=2 << 20, late_limit_s=10.0)
    try:
        for rows in (6, 48, 96):
            layers = [Layer(rows) for _ in ranks.groups]
            torch.cuda.synchronize()
            launchers = [group._found.launcher for group in ranks.groups]
            steps = [one.tracks(own, 2) for one, own in zip(layers, launchers, strict=True)]
            times = together(ranks, steps)
            right = all(one.right(own) for one, own in zip(layers, launchers, strict=True))
            wrong += report("fused, 2 ranks", layers[0].x.nbytes, times, right)
    finally:
        ranks.close()
    return wrong


def diet() -> int:
    """Print the diets beside today's kernels; returns the number of wrong rows."""
    names = ("today", "release and relaxed polls", "one poller", "both")
    mirrors = [Mirror(4, Shape(2, 512, 4, kind)) for kind in range(4)]
    wrong, stream = 0, new_stream(DEVICE)
    for nbytes in (4096, 16384, 32768, *SIZES[:4]):
        x = torch.randn(nbytes // 2, device=DEVICE).to(BF16)
        outs = [torch.zeros_like(x) for _ in range(6)]

        def step(mirror: Mirror, out: torch.Tensor, form: Form | None, x: Any = x) -> None:
            request = reduce_request(2, Dtype.BF16, tuple(x.shape), x.nbytes)
            request.input, request.output = x.data_ptr(), out.data_ptr()
            mirror.launcher.launch(request, stream_now(), form)

        steps: Steps = {
            name: partial(step, mirror, out, None)
            for name, mirror, out in zip(names, mirrors, outs, strict=False)
        }
        steps["today, split 1+2"] = partial(step, mirrors[0], outs[4], Form(1, 2))
        steps["today, split 2+4"] = partial(step, mirrors[0], outs[5], Form(2, 4))
        torch.cuda.synchronize()
        times = alone(steps, stream)
        torch.cuda.synchronize()
        wrong += report("diet, itself", nbytes, times, all(torch.equal(o, x + x) for o in outs))
    return wrong


def main(words: list[str]) -> int:
    """Print one part; returns the exit code."""
    parts = {"two-shot": two_shot, "fused": fused, "diet": diet}
    if len(words) != 1 or words[0] not in parts:
        print(f"usage: bench_beyond.py {'|'.join(parts)}")
        return 2
    if not torch.cuda.is_available():
        print("FAIL no CUDA device: torch sees none")
        return 1
    print(f"# {torch.cuda.get_device_name(0)}, torch {torch.__version__}, {CALLS} calls a replay")
    torch.zeros(1, device=DEVICE)  # makes the context that pinning needs
    return 1 if parts[words[0]]() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
