"""What a rank's log tells of its engine, and what in it fails a start. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from tetraspark.errors import Problem
from tetraspark.fabric.nccl_log import NcclLog
from tetraspark.line.kv_pool import KvPool, PoolUsage, pool_problems, read_usage


@dataclass(frozen=True)
class EngineFacts:
    """The KV pool of a rank, its newest usage, and its NCCL; what was not said is empty."""

    pool: KvPool = field(default_factory=KvPool)
    usage: PoolUsage | None = None
    nccl: NcclLog = field(default_factory=NcclLog)

    def read(self, text: str) -> Self:
        """Return what is known after one more line."""
        return type(self)(
            pool=self.pool.read(text),
            usage=read_usage(text) or self.usage,
            nccl=self.nccl.read(text),
        )


def read_engine(texts: Iterable[str], since: EngineFacts | None = None) -> EngineFacts:
    """Read the next lines of one rank; `since` is what is known from those before."""
    found = since or EngineFacts()
    for text in texts:
        found = found.read(text)
    return found


def engine_problems(
    facts: Mapping[int, EngineFacts], nodes: Sequence[str], pin: int | None, fabric: bool
) -> list[Problem]:
    """Return what fails a start: a pool that is not the pinned one, sockets in place of RDMA.

    `nodes` are in rank order, `pin` is `engine.kv_tokens`, and `fabric` says whether the site has
    one. A log that does not name NCCL's network says nothing about it.
    """
    pools = {rank: one.pool for rank, one in facts.items()}
    problems = [] if pin is None else pool_problems(pools, pin, nodes)
    if fabric:
        problems += _socket_problems(facts, nodes)
    return problems + _version_problems(facts, nodes)


def _socket_problems(facts: Mapping[int, EngineFacts], nodes: Sequence[str]) -> list[Problem]:
    wanted = "RDMA on every rank, as [fabric] says"
    return [
        Problem(
            where=f"rank {rank} ({nodes[rank]})",
            seen="NCCL uses TCP sockets",
            wanted=wanted,
            fix=f"on {nodes[rank]}: rdma link; ls /dev/infiniband; then tetraspark doctor",
        )
        for rank, one in sorted(facts.items())
        if one.nccl.uses_sockets
    ]


def _version_problems(facts: Mapping[int, EngineFacts], nodes: Sequence[str]) -> list[Problem]:
    """Tell ranks that loaded another NCCL than the first that names its own."""
    told = {rank: one.nccl.version for rank, one in sorted(facts.items()) if one.nccl.version}
    if not told:
        return []
    first = next(iter(told))
    return [
        Problem(
            where=f"rank {rank} ({nodes[rank]})",
            seen=f"NCCL {version}",
            wanted=f"NCCL {told[first]}, as rank {first} ({nodes[first]}) has",
            fix="make the images of both nodes equal: tetraspark build",
        )
        for rank, version in told.items()
        if version != told[first]
    ]
