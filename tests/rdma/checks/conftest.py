"""Clusters of real ranks over the VM's RDMA devices. These files run inside the VM only."""

import gc
import multiprocessing
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.collectives.cluster import Cluster
from tests.collectives.oracle import raw, reduced, shard
from tetraspark.collectives.library import proxy
from tetraspark.collectives.verbs_native import verbs

REPLY_LIMIT_S = 90
"""Everything is slow under emulation, the first import of torch most of all."""


@pytest.fixture(scope="session", autouse=True)
def ready_to_fork() -> None:
    """Load all that ranks need, once: under emulation each import and load takes seconds."""
    proxy(), verbs()
    raw(reduced([shard(0, rank, (1024,)) for rank in (0, 1)]))
    gc.collect()
    gc.freeze()


@pytest.fixture
def cluster() -> Iterator[Callable[..., Cluster]]:
    """Start real ranks; whatever happens, nothing of them stays behind."""
    started: list[Cluster] = []

    def start(world: int, **options: Any) -> Cluster:
        # Forked, so that torch is imported once: under emulation that takes a minute.
        fork = multiprocessing.get_context("fork")
        started.append(Cluster(world, reply_limit_s=REPLY_LIMIT_S, context=fork, **options))
        return started[-1]

    yield start
    for one in started:
        one.stop()
