"""Clusters of real ranks over the VM's RDMA devices. These files run inside the VM only."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.collectives.cluster import Cluster

REPLY_LIMIT_S = 90
"""Everything is slow under emulation, the first import of torch most of all."""


@pytest.fixture
def cluster() -> Iterator[Callable[..., Cluster]]:
    """Start real ranks; whatever happens, nothing of them stays behind."""
    started: list[Cluster] = []

    def start(world: int, **options: Any) -> Cluster:
        started.append(Cluster(world, reply_limit_s=REPLY_LIMIT_S, **options))
        assert [answer[0] for answer in started[-1].opened] == ["ok"] * world, started[-1].opened
        return started[-1]

    yield start
    for one in started:
        one.stop()
