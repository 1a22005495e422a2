"""Cold start: seconds from `serve` to the first token, beside the floor no launcher can beat.

The floor is the engine's own imports: a line of N ranks starts N server processes and then N
schedulers and a detokenizer, and each of them imports the engine before it does anything.
"""

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

from tetraspark.errors import Problem, RunError
from tetraspark.line.plan import Plan

SERVER = "import sglang.launch_server, sglang.srt.entrypoints.http_server"
SCHEDULER = "import sglang.srt.managers.scheduler, sglang.srt.managers.detokenizer_manager"


@dataclass(frozen=True)
class Sample:
    """One cold start, in seconds: the imports alone, then the start up to its first token."""

    floor: float
    first_token: float

    @property
    def over_floor(self) -> float:
        """What the start costs beyond the imports."""
        return self.first_token - self.floor


@dataclass(frozen=True)
class StartReport:
    """Samples of a cold start and their medians; describes the machine it ran on."""

    line: str
    engine: str
    ranks: int
    cores: int
    samples: tuple[Sample, ...]

    def median(self, value: Callable[[Sample], float]) -> float:
        """Return the median of a value over the samples."""
        return statistics.median(value(sample) for sample in self.samples)

    def as_dict(self) -> dict[str, object]:
        """Return the report as JSON-able values."""
        return {
            **asdict(self),
            "median_floor": self.median(lambda sample: sample.floor),
            "median_first_token": self.median(lambda sample: sample.first_token),
            "median_over_floor": self.median(lambda sample: sample.over_floor),
        }


def measure_start(plan: Plan, runs: int, serve_once: Callable[[], float]) -> Iterator[Sample]:
    """Yield one sample a run; the imports and the start alternate, so both see the same machine.

    `serve_once` serves the line, returns its seconds to the first token, and stops it.
    """
    for _ in range(runs):
        yield Sample(floor=import_floor(plan), first_token=serve_once())


def report(plan: Plan, samples: list[Sample]) -> StartReport:
    """Return the report of a plan's samples."""
    cores = len(os.sched_getaffinity(0))
    return StartReport(plan.line, plan.engine, len(plan.ranks), cores, tuple(samples))


def import_floor(plan: Plan) -> float:
    """Return the seconds in which as many processes as the line has import the engine."""
    count = len(plan.ranks)
    return _import_together(plan, SERVER, count) + _import_together(plan, SCHEDULER, count + 1)


def _import_together(plan: Plan, code: str, count: int) -> float:
    command = plan.ranks[0]
    env = {"PATH": os.environ["PATH"]} | dict(command.env)
    started = time.monotonic()
    processes = [
        subprocess.Popen(
            [command.argv[0], "-c", code],
            env=env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(count)
    ]
    codes = [process.wait() for process in processes]
    if any(codes):
        raise RunError(
            Problem(command.argv[0], f"`{code}` ended with {codes}", "0", "make environment")
        )
    return time.monotonic() - started
