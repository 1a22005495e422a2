"""Observations of a line of four nodes in each of its states, for what shows them."""

import math
from dataclasses import replace

from tetraspark.watch.observation import (
    CanarySample,
    EngineSample,
    Finding,
    LaneSample,
    Observation,
    RankSample,
)

NODES = ("spark1", "spark2", "spark3", "spark4")
DEVICES = ("rocep1s0f0", "rocep1s0f1")
GIB = 1 << 30
AT = 1_796_000_000.0
ENGINE = EngineSample(
    running=6,
    waiting=2,
    generated_tokens=18_204_991,
    prefilled_tokens=402_118_340,
    tokens_per_second=318.4,
    kv_used=0.43,
    swa_used=0.91,
    acceptance=2.41,
)
SILENT = EngineSample(None, None, None, None, None, None, None, None)
VERSIONS = {"tetraspark": "0.1.0", "sglang": "0.5.23", "torch": "2.9.1", "driver": "580.95.05"}
LANE_DOWN = Finding(
    id="LANE.DOWN",
    where="spark2 rocep1s0f1",
    observed="lane 1 to spark3 is down since 18:02:11, 3 errors: transport retries exceeded",
    wanted="every lane up; traffic goes over lane 0 meanwhile",
    fix="tetraspark fabric prove --nodes spark2,spark3",
)
MEMORY = Finding(
    id="MEM.AVAILABLE",
    where="spark4",
    observed="3.1 GiB of memory available",
    wanted="at least 4 GiB, or the node's killer ends the rank",
    fix="tetraspark weights evict --node spark4",
)


def lanes(rank: int, sent: int, down: tuple[int, int, int] | None = None) -> tuple[LaneSample, ...]:
    """Return two lanes to each peer; `down` is (rank, peer, lane) of one that is down."""
    return tuple(
        LaneSample(
            peer=peer,
            lane=lane,
            device=device,
            bytes=sent * (3 - lane) * (1 + (rank + peer) % 3),
            writes=sent // 4096,
            errors=3 if (rank, peer, lane) == down else 0,
            state="down" if (rank, peer, lane) == down else "up",
        )
        for peer in range(len(NODES))
        if peer != rank
        for lane, device in enumerate(DEVICES)
    )


def ranks(sent: int, down: tuple[int, int, int] | None = None) -> tuple[RankSample, ...]:
    return tuple(
        RankSample(
            rank=rank,
            node=node,
            state="running",
            detail="",
            operations=91_204_113 + rank,
            lanes=lanes(rank, sent, down),
            memory_free=(3 + rank) * GIB,
            memory_available=int((11.4 + 7 * rank) * GIB),
            page_cache=(9 + 7 * rank) * GIB,
            collective="ready",
            late=tuple((peer, 2 + peer) for peer in range(len(NODES)) if peer != rank),
        )
        for rank, node in enumerate(NODES)
    )


def history(at: float) -> tuple[tuple[float, float], ...]:
    """Return ten minutes with a pause in them."""
    return tuple(
        (at - 600 + 2 * step, 250 + 60 * math.sin(step / 9) + 40 * math.sin(step / 2.3))
        for step in range(301)
        if not 110 < step < 130
    )


def ready(at: float = AT, sent: int = 10**12) -> Observation:
    return Observation(
        line="v41-flash",
        run="20261130-075500-318204",
        at=at,
        state="ready",
        reason="every rank is up, the canary answered",
        rank=None,
        since=at - 11_520,
        ranks=ranks(sent),
        engine=ENGINE,
        canary=CanarySample(at - 12, 0.42, ok=True, reason=""),
        findings=(),
        versions=VERSIONS,
        history=history(at),
    )


def degraded(at: float = AT, sent: int = 10**12) -> Observation:
    """One lane of rank 1 is down, and a node is short of memory."""
    return replace(
        ready(at, sent),
        state="degraded",
        reason="lane 1 from spark2 to spark3 is down; the other lane carries",
        rank=1,
        since=at - 184,
        ranks=ranks(sent, down=(1, 2, 1)),
        findings=(LANE_DOWN, MEMORY),
    )


def wedged(at: float = AT) -> Observation:
    """Every rank is up and the canary does not come back."""
    return replace(
        ready(at),
        state="wedged",
        reason="rank 2 waits in all-reduce 91,204,115 for rank 3 since 74 s",
        rank=3,
        since=at - 74,
        ranks=tuple(
            replace(one, collective=None if one.rank == 3 else "waiting") for one in ranks(10**12)
        ),
        engine=replace(ENGINE, tokens_per_second=0.0, waiting=19),
        canary=CanarySample(at - 30, None, ok=False, reason="no answer within 30 s"),
        history=(*history(at - 80), *((at - 78 + 2 * step, 0.0) for step in range(40))),
    )


def down(at: float = AT) -> Observation:
    """A rank was killed, and the others went with it."""
    killed = "killed by signal 9: the kernel's log says out of memory"
    return replace(
        ready(at),
        state="down",
        reason=f"rank 2 (spark3): {killed}",
        rank=2,
        since=at - 9,
        ranks=tuple(
            replace(
                one,
                state="exited",
                detail=killed if one.rank == 2 else "exit code 1, after rank 2",
                lanes=(),
            )
            for one in ranks(0)
        ),
        engine=SILENT,
        canary=None,
    )


def starting(at: float = AT) -> Observation:
    return replace(
        ready(at),
        state="starting",
        reason="phase load, 48 s in it",
        since=at - 71,
        ranks=tuple(replace(one, lanes=(), operations=None) for one in ranks(0)),
        engine=SILENT,
        canary=None,
        history=(),
    )
