"""A rank that is stuck in the engine's own group names the rank that all others name."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.line.faults import roots

pytestmark = pytest.mark.timed
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("frozen", [0, 1, 2, 3])
def test_every_rank_names_a_stopped_one_wherever_it_waits(frozen: int) -> None:
    """Which ranks wait for it in the engine's broadcast and which in ours depends on its place."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.engine.stuck_ranks", str(frozen)],
        cwd=ROOT, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["quits"] > 0
    assert found["ended"], "the engine waits a minute for diagnostics of a scheduler that lives"
    first = {
        rank: next((line for line in text.splitlines() if "CollectiveError: " in line), "")
        for rank, text in found["words"].items()
    }
    assert "" not in first.values(), first
    (root,) = roots({int(rank): words for rank, words in first.items()})
    assert root.startswith(f"frozen: rank {frozen}, seen by rank ")
