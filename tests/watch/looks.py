"""Looks at a line of four ranks, as a watch finds them: well, or with one thing wrong."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tetraspark.fleet.meminfo import GIB
from tetraspark.watch.judge import Judgement, Limits, judge
from tetraspark.watch.look import NOTHING_TOLD, Look
from tetraspark.watch.observation import CanarySample, EngineSample, LaneSample, RankSample

LIMITS = Limits(stall_seconds=120, longest_step=60)
STEP = 15.0
OK = CanarySample(1.0, 0.4, True, "")
LOST = CanarySample(1.0, None, False, "ReadTimeout: timed out")
WRONG = CanarySample(1.0, 0.4, False, "'the the the' is without '42'")


def rank(number: int, **fields: Any) -> RankSample:
    """Return a rank that is well."""
    lane = LaneSample((number + 1) % 4, 0, "rocep1s0f0", 1 << 30, 1000, 0, "up")
    well = RankSample(
        number, f"spark{number + 1}", "running", "", 1000, (lane,),
        20 * GIB, 30 * GIB, 8 * GIB, "ready", (),
    )  # fmt: skip
    return replace(well, **fields)


def ranks(operations: int = 1000, **fields: Any) -> tuple[RankSample, ...]:
    """Return four of them."""
    return tuple(rank(number, operations=operations, **fields) for number in range(4))


def engine(**fields: Any) -> EngineSample:
    """Return what an idle engine counts."""
    return replace(NOTHING_TOLD, **{"running": 0, "waiting": 0, "generated_tokens": 0,
                                    "prefilled_tokens": 0, "kv_used": 0.1, **fields})  # fmt: skip


def look(at: float, **fields: Any) -> Look:
    """Return a look at a line that is idle and well."""
    lost = fields.get("canary") is LOST
    well = Look(at, "run", "ready", "", None, ranks(), engine(), None, lost)
    return replace(well, **fields)


def judged(looks: Iterable[Look]) -> list[Judgement]:
    """Return what each look amounted to when it was the newest."""
    known = list(looks)
    return [judge(known[: end + 1], LIMITS) for end in range(len(known))]


def states(looks: Iterable[Look]) -> list[str]:
    """Return the states alone."""
    return [one.state for one in judged(looks)]
