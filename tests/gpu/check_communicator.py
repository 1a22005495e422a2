"""The engine's communicator on GPU tensors: ranks as processes, eager and in graphs, two routes.

Run: `python tests/gpu/check_communicator.py`; prints PASS or FAIL a case, exits 1 on FAIL. Rank r
is on GPU r modulo their number; the engine above it is left out.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import torch

from tests.engine.engine_group import EngineGroup
from tests.gpu.processes import run_team
from tests.gpu.values import raw, summed, values
from tetraspark.collectives.cuda_events import new_event
from tetraspark.collectives.settings import Settings
from tetraspark.collectives.shm import ShmTransport
from tetraspark.engine.communicator import Communicator

SETTINGS = Settings(
    max_reduce_bytes=1 << 16, max_two_shot_bytes=1 << 20, two_shot_from=(1 << 16) + 16, lanes=2
)
SIZES = (4096, 61440, 491520)


class Step:
    """A result of the engine: it is ready once its copy is done."""

    def __init__(self) -> None:
        self.copy_done = new_event()
        self.copy_done.record()


def bits(rank: int, world: int, device: torch.device, queued: bool) -> dict[str, int]:
    """Check eager and replayed all-reduces and gathers; returns what was routed where."""
    group = EngineGroup(rank, world, torch.distributed.group.WORLD, str(device))
    transport = ShmTransport(rank, pull=not queued, queued=queued)
    ours = Communicator(group, SETTINGS, transport)
    xs = [torch.zeros(1, nbytes // 2, dtype=torch.bfloat16, device=device) for nbytes in SIZES]
    for x in xs:
        assert ours.reduces(x)
    assert not ours.reduces(torch.zeros(1 << 20, device=device))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        totals = [ours.all_reduce(x.clone()) for x in xs]
        parts = ours.all_gather(xs[0], -1)
    for replay in range(20):
        shards = [[values(replay * 64 + r * 8 + i, tuple(x.shape), x.dtype) for r in range(world)]
                  for i, x in enumerate(xs)]  # fmt: skip
        for i, x in enumerate(xs):
            x.copy_(shards[i][rank])
        graph.replay()
        eager = ours.all_reduce(xs[1].clone())
        ours.check(Step())
        for i, total in enumerate(totals):
            assert raw(total) == summed(shards[i]), f"replay {replay}, {SIZES[i]} bytes"
        assert raw(eager) == summed(shards[1]), f"eager at {replay}"
        assert raw(parts) == raw(torch.cat(shards[0], -1)), f"gather at {replay}"
    assert ours.group.watchdog().look() is None
    state = ours.state()
    assert state["root"] is None and ("relay" in state) == queued
    ours.group.close()
    return {way: counts["operations"] for way, counts in state["routed"].items()}


def main() -> int:
    """Run the cases; returns the exit code."""
    if not torch.cuda.is_available():
        print("FAIL no CUDA device: torch sees none")
        return 1
    failed = 0
    for name, queued in (("shared memory", False), ("behind a relay", True)):
        try:
            print(f"PASS 2 ranks, {name}: {run_team(2, bits, queued)[0]}", flush=True)
        except (AssertionError, RuntimeError) as error:
            failed += 1
            print(f"FAIL 2 ranks, {name}: {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
