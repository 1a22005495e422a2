"""Runs a benchmark of the collectives: one process a rank on this machine, all of them bounded."""

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.fleet.hardware import cores, machine
from tetraspark.measure.collectives import Bench, Report, Row, Samples

RANK = (sys.executable, "-m", "tetraspark.measure.collectives_rank")
SILENT_S = 180.0
"""No rank ended a round for so long: above every limit that the ranks have themselves."""
FOLLOW_S = 5.0
"""How long the others may take to say why they failed too."""
POLL_S = 0.05


@dataclass(frozen=True)
class Run:
    """One start of the processes: the rival in them, and what it needs in the environment."""

    rival: str
    environment: tuple[tuple[str, str], ...] = ()


# NCCL reads NCCL_P2P_DISABLE once, so its two ways are two starts; they alternate.
CUDA_RUNS = (Run("nccl"), Run("nccl-p2p-off", (("NCCL_P2P_DISABLE", "1"),))) * 2


def measure(bench: Bench) -> Report:
    """Measure. Raises UsageError where the machine cannot, RunError when a rank failed."""
    _require(bench)
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
    with tempfile.TemporaryDirectory(prefix="tetraspark-bench-") as name:
        folder = Path(name)
        told = {"bench": asdict(bench), "rival": run.rival}
        (folder / "bench.json").write_text(json.dumps(told))
        with _processes(bench.world, folder, run) as processes:
            _wait(processes, folder)
            results = [_result(folder, rank, one.poll()) for rank, one in enumerate(processes)]
    problems = [
        Problem(f"rank {rank}, beside {run.rival}", str(found["error"]), "a result")
        for rank, found in enumerate(results)
        if "error" in found
    ]
    if problems:
        raise RunError(*problems)
    return results


@contextmanager
def _processes(world: int, folder: Path, run: Run) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Start the ranks; whatever happens, none of them stays behind."""
    env = {name: value for name, value in os.environ.items() if name != "NCCL_P2P_DISABLE"}
    env |= {"OMP_NUM_THREADS": "1"} | dict(run.environment)
    env.setdefault("GLOO_SOCKET_IFNAME", "lo")
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for rank in range(world):
            with (folder / f"log-{rank}").open("wb") as log:
                command = [*RANK, str(folder), str(rank)]
                processes.append(
                    subprocess.Popen(
                        command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                    )
                )
        yield processes
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()


def _wait(processes: Sequence[subprocess.Popen[bytes]], folder: Path) -> None:
    """Return when all have ended, some time after one failed, or when none moves any more."""
    end = time.monotonic() + SILENT_S
    failed, moved = False, 0.0
    while time.monotonic() < end:
        codes = [process.poll() for process in processes]
        if None not in codes:
            return
        newest = max((one.stat().st_mtime for one in folder.glob("alive-*")), default=0.0)
        if any(codes) and not failed:
            failed, end = True, time.monotonic() + FOLLOW_S
        elif newest != moved and not failed:
            moved, end = newest, time.monotonic() + SILENT_S
        time.sleep(POLL_S)


def _result(folder: Path, rank: int, code: int | None) -> dict[str, Any]:
    """Return what a rank left, or what is known of one that left nothing; None: it still runs."""
    path = folder / f"result-{rank}.json"
    if path.exists():
        found: dict[str, Any] = json.loads(path.read_text())
        return found
    lines = (folder / f"log-{rank}").read_text(errors="replace").strip().splitlines()
    fate = "did not end and was killed" if code is None else f"ended with {code} and no result"
    return {"error": f"{fate}; last words: {lines[-1] if lines else 'none'}"}


def _require(bench: Bench) -> None:
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
