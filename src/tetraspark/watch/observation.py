"""One look at a served line, as a value: what was seen and what it amounts to.

Sizes are bytes, times are Unix seconds, None is "not told".
"""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class LaneSample:
    """One lane of one rank, as its communicator counts; `state` is "up" or "down"."""

    peer: int
    lane: int
    device: str
    bytes: int
    writes: int
    errors: int
    state: str


@dataclass(frozen=True)
class RankSample:
    """One rank and its node.

    `state` is that of `line.ranks.RankStatus`; `operations` are the collectives completed. The
    memory fields are the node's. `collective` is what the communicator is at: "ready" between two
    operations, "waiting" within one, "failed" or "closed". `late` has (peer, how often it kept
    this rank waiting).
    """

    rank: int
    node: str
    state: str
    detail: str
    operations: int | None
    lanes: tuple[LaneSample, ...]
    memory_free: int | None
    memory_available: int | None
    page_cache: int | None
    collective: str | None = None
    late: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class EngineSample:
    """What the engine counts: requests, tokens since its start, and shares of its pools (0 to 1).

    From its /metrics, or from its log where it has none. `acceptance` is tokens a verification
    step of speculative decoding.
    """

    running: int | None
    waiting: int | None
    generated_tokens: int | None
    prefilled_tokens: int | None
    tokens_per_second: float | None
    kv_used: float | None
    swa_used: float | None
    acceptance: float | None


@dataclass(frozen=True)
class CanarySample:
    """A canary completion: when it was asked for, and the seconds it took, None without one."""

    asked_at: float
    seconds: float | None
    ok: bool
    reason: str


@dataclass(frozen=True)
class Finding:
    """Something to look at that a verdict alone does not say."""

    id: str
    where: str
    observed: str
    wanted: str
    fix: str


@dataclass(frozen=True)
class Observation:
    """One look at the line.

    `state` is "ready", "degraded", "wedged", "down" or "starting", since `since`; `rank` is the
    one to blame. `history` holds (at, tokens per second), newest last, at most 600.
    """

    line: str
    run: str | None
    at: float
    state: str
    reason: str
    rank: int | None
    since: float
    ranks: tuple[RankSample, ...]
    engine: EngineSample
    canary: CanarySample | None
    findings: tuple[Finding, ...]
    versions: dict[str, str]
    history: tuple[tuple[float, float], ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, for `--json`."""
        return asdict(self)
