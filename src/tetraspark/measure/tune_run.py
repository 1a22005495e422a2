"""Runs `tetraspark tune`: the ranks of a line as processes of this machine."""

import sys
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime

from tetraspark.collectives.thresholds import ThresholdKey
from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.measure.collectives import Bench
from tetraspark.measure.collectives_run import describe, require
from tetraspark.measure.rank_processes import RankProcesses
from tetraspark.measure.tune import RUN, Decision, Timing
from tetraspark.measure.tune_measured import Measured
from tetraspark.measure.tune_report import TuneReport

RANK = (sys.executable, "-m", "tetraspark.measure.tune_rank")
RIVALS = {"cpu": "gloo", "cuda": "nccl"}


def tune(bench: Bench, repeats: int, key: ThresholdKey, heard: Callable[[str], None]) -> TuneReport:
    """Measure every size `repeats` times over; `heard` is told how far it is.

    Raises UsageError for what cannot be measured here, RunError when a rank failed or the ranks
    were not all told the same.
    """
    require(bench)
    if len(bench.sizes()) < RUN:
        seen = f"{len(bench.sizes())} sizes"
        wanted = f"at least {RUN}: two-shot must be faster at so many in a row"
        raise UsageError(Problem("--min, --max", seen, wanted, "a larger --max"))
    rival = RIVALS[bench.device]
    ranks = RankProcesses(bench.world, RANK, rival)
    about = describe()
    results = ranks.run({"bench": asdict(bench), "rival": rival, "repeats": repeats}, heard)
    first = results[0]
    for rank, found in enumerate(results):
        if (found["decision"], found["curves"]) != (first["decision"], first["curves"]):
            seen = f"{found['decision']}, and rank 0 {first['decision']}"
            raise RunError(Problem(f"rank {rank}", seen, "one decision on every rank"))
    measured = Measured(
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        about=about | first["about"],
        rival=rival,
        rounds=bench.rounds,
        repeats=tuple(tuple(Timing(**one) for one in curve) for curve in first["curves"]),
    )
    return TuneReport(
        key=key,
        measured=measured,
        decision=Decision(**first["decision"]),
        wrong=sum(found["wrong"] for found in results),
        compared=sum(found["compared"] for found in results),
    )
