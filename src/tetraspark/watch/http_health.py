"""Health that means health: the line answers, and somebody looked a moment ago."""

from dataclasses import dataclass

from tetraspark.watch.observation import Observation

HEALTHY = ("ready", "degraded")
"""States in which the line answers requests."""


@dataclass(frozen=True)
class Health:
    """Whether requests may be sent to the line, why not, and how old what is known is.

    `age` is in seconds, None before the first look; `stale` says that nobody looks any more.
    """

    ok: bool
    reason: str
    age: float | None
    stale: bool


def health_of(seen: Observation | None, now: float, stale_after: float) -> Health:
    """Judge the newest observation at `now` (Unix seconds)."""
    if seen is None:
        return Health(False, "nobody has looked at the line yet", None, False)
    age = max(now - seen.at, 0.0)
    if age > stale_after:
        # A watch does not look while a suite times the line.
        why = "the watch waits for a benchmark, has stopped, or hangs"
        reason = f"the last look at the line is {age:.0f} s old: {why}"
        return Health(False, reason, age, True)
    whom = "" if seen.rank is None else f", rank {seen.rank}"
    reason = f"{seen.state}{whom}" + (f": {seen.reason}" if seen.reason else "")
    return Health(seen.state in HEALTHY, reason, age, False)
