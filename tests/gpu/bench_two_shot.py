"""Two-shot beside one-shot, all ranks on one GPU.

Every track is a graph of calls; tracks of one row are replayed in turn, so that drift of the
machine meets all of them. Times are us a call of the slowest rank, medians over replays. Ranks of
one GPU share its link: a stand-in for several GPUs, no measurement of them. One JSON line a row;
ratios are to the first track, medians of the ratios of neighbouring replays.

Run: `python tests/gpu/bench_two_shot.py`. Exits 1 on a wrong result.
"""

import json
import statistics
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import torch

from tests.gpu.one_gpu import DEVICE, Ranks
from tetraspark.collectives.algorithm import Algorithm
from tetraspark.collectives.cuda_events import new_event
from tetraspark.collectives.cuda_launch import Form
from tetraspark.collectives.cuda_two_shot import gather_of

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
    """Print one-shot beside two-shot at one size; returns 1 if a bit is wrong."""
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
    total = xs[0].float()
    for x in xs[1:]:
        total = total + x.float()
    wanted = total.to(BF16)
    right = all(torch.equal(out, wanted) for own in outs for out in own.values())
    return report(f"two-shot, {ranks.world} ranks", nbytes, times, right)


def main() -> int:
    """Print one-shot beside two-shot with 4 and 2 ranks; returns the exit code."""
    if not torch.cuda.is_available():
        print("FAIL no CUDA device: torch sees none")
        return 1
    print(f"# {torch.cuda.get_device_name(0)}, torch {torch.__version__}, {CALLS} calls a replay")
    wrong = 0
    for world in (4, 2):
        ranks = Ranks(
            world, lanes=4, max_reduce_bytes=2 << 20, max_two_shot_bytes=2 << 20, late_limit_s=10.0
        )
        try:
            wrong += sum(two_shot_row(ranks, nbytes) for nbytes in SIZES)
        finally:
            ranks.close()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
