"""Runs a benchmark of the collectives: one process a rank on this machine, all of them bounded."""

import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from typing import Any

from tetraspark.errors import Problem, UsageError
from tetraspark.fleet.hardware import cores, machine
from tetraspark.measure.collectives import Bench, Report, Row, Samples
from tetraspark.measure.rank_processes import RankProcesses

RANK = (sys.executable, "-m", "tetraspark.measure.collectives_rank")


@dataclass(frozen=True)
class Run:
    """One start of the processes: the rival in them, and what it needs in the environment.

    None: a variable that must not be set there.
    """

    rival: str
    environment: tuple[tuple[str, str | None], ...] = ()


P2P = "NCCL_P2P_DISABLE"
# NCCL reads it once, so its two ways are two starts; they alternate.
CUDA_RUNS = (Run("nccl", ((P2P, None),)), Run("nccl-p2p-off", ((P2P, "1"),))) * 2


def measure(bench: Bench) -> Report:
    """Measure. Raises UsageError where the machine cannot, RunError when a rank failed."""
    require(bench)
    runs = (Run("gloo"),) if bench.device == "cpu" else CUDA_RUNS
    # Each of NCCL's ways gets half of the starts, so half of the rounds in each.
    part = bench if len(runs) == 1 else replace(bench, rounds=-(-bench.rounds // 2))
    about = describe()
    tables = []
    for run in runs:
        results = run_once(part, run)
        about |= results[0]["about"]
        tables.append(merge([result["rows"] for result in results]))
    return Report(bench, about, join(tables))


def merge(ranks: Sequence[list[dict[str, Any]]]) -> list[Row]:
    """Return the rows of one run: of each round the slowest rank, of all ranks the wrong values."""
    rows = []
    for found in zip(*ranks, strict=True):
        samples = {}
        for name in found[0]["samples"]:
            of_ranks = [rank["samples"][name] for rank in found]
            samples[name] = Samples(
                tuple(map(max, zip(*(one["us"] for one in of_ranks), strict=True))),
                sum(one["wrong"] for one in of_ranks),
                sum(one["compared"] for one in of_ranks),
                tuple(map(sum, zip(*(one["cpu_us"] for one in of_ranks), strict=True))),
            )
        rows.append(Row(found[0]["size"], samples))
    return rows


def join(tables: Sequence[list[Row]]) -> tuple[Row, ...]:
    """Return one table of several runs: a contestant that was in more than one has all samples."""
    rows = []
    for same_size in zip(*tables, strict=True):
        samples: dict[str, Samples] = {}
        for row in same_size:
            for name, found in row.samples.items():
                samples[name] = samples[name] + found if name in samples else found
        rows.append(Row(same_size[0].size, samples))
    return tuple(rows)


def run_once(bench: Bench, run: Run) -> list[dict[str, Any]]:
    """Start the ranks, wait for all; returns their results in rank order. Raises RunError."""
    ranks = RankProcesses(bench.world, RANK, run.rival, dict(run.environment))
    return ranks.run({"bench": asdict(bench), "rival": run.rival})


def require(bench: Bench) -> None:
    """Raise UsageError where torch or GPUs are missing."""
    if find_spec("torch") is None:
        fix = "pip install 'tetraspark[engine]'"
        raise UsageError(Problem(sys.executable, "no torch", "torch, for its collectives", fix))
    if bench.device == "cuda":
        import torch

        seen = torch.cuda.device_count()
        if seen < bench.world:
            raise UsageError(
                Problem(
                    "--device cuda",
                    f"{seen} GPUs for {bench.world} ranks",
                    "a GPU a rank: NCCL, the rival, takes no two ranks on one",
                    f"--world {seen}" if seen >= 2 else "--device cpu",
                )
            )


def describe() -> dict[str, str]:
    """Return what this machine is, as far as it decides the times."""
    return {
        "machine": machine(),
        "cores": str(cores()),
        "load": " ".join(f"{one:.1f}" for one in os.getloadavg()),
        "python": platform.python_version(),
    }
