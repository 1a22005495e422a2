"""Opening a group of kernels where that cannot be: every rank is told why, nothing stays behind."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tetraspark.collectives.cuda_opening import cuda_opening, mapped_bytes
from tetraspark.collectives.failure import RefusedError
from tetraspark.collectives.layout import Layout
from tetraspark.collectives.routes import Routes
from tetraspark.collectives.settings import Settings
from tetraspark.collectives.shm import ShmTransport

ROOT = Path(__file__).parents[2]
SMALL = Settings(max_reduce_bytes=4096, max_gather_bytes=2048)


def refusals(settings: Settings, folder: Path, world: int = 2) -> list[str]:
    """Drive all ranks' openings in step; returns what each one raised."""
    device = torch.device("cuda", 0)
    steps: dict[int, Any] = {
        rank: cuda_opening(rank, world, settings, ShmTransport(rank, directory=folder), device)
        for rank in range(world)
    }
    told: dict[int, Any] = dict.fromkeys(steps)
    offers: dict[int, bytes] = {}
    said: dict[int, str] = {}
    for _ in range(100_000):
        for rank in set(steps) - set(offers) - set(said):
            try:
                wanted = steps[rank].send(told[rank])
            except RefusedError as error:
                said[rank] = str(error)
                continue
            told[rank] = None
            if wanted is not None:
                offers[rank] = wanted
        if len(said) == world:
            return [said[rank] for rank in range(world)]
        if len(offers) == world:
            told = {key: [offers[rank] for rank in range(world)] for key in steps}
            offers.clear()
    raise TimeoutError("the openings did not end")


def test_without_a_gpu_every_rank_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for words in refusals(SMALL, tmp_path):
        for rank in range(2):
            assert f"rank {rank}: cannot use cuda:0: torch sees no CUDA device" in words
    assert list(tmp_path.iterdir()) == []


def test_routes_that_differ_by_pair_are_refused(tmp_path: Path) -> None:
    pairs = (((0, 1), (0, 1)), ((0, 2), (0,)), ((1, 2), (1, 0)))
    settings = Settings(
        max_reduce_bytes=4096, max_gather_bytes=2048, lanes=2, routes=Routes(3, 2, pairs)
    )
    for words in refusals(settings, tmp_path, 3):
        assert "the route to rank 2 has 1 of 2 lanes" in words
    assert list(tmp_path.iterdir()) == []


def test_only_what_kernels_touch_is_pinned() -> None:
    layout = Layout(4, 2, 8192, 4096)
    assert mapped_bytes(layout, pull=True) == layout.recv
    assert mapped_bytes(layout, pull=False) == layout.total
    assert layout.recv % 4096 == 0


@pytest.mark.parametrize(
    ("script", "code", "words"),
    [
        ("bench_two_gpus.py", 2, "this needs 2 GPUs, torch sees 0"),
        ("check_one_gpu.py", 1, "no CUDA device"),
        ("bench_two_shot.py", 1, "no CUDA device"),
        ("check_processes.py", 1, "no CUDA device"),
    ],
)
def test_a_gpu_script_without_its_gpus_fails_clearly(script: str, code: int, words: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests/gpu" / script)],
        env={"PYTHONPATH": str(ROOT / "src"), "CUDA_VISIBLE_DEVICES": "", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == code, done.stderr
    assert done.stdout.startswith("FAIL") and words in done.stdout
    assert "Traceback" not in done.stderr
