"""Clusters of real ranks over the VM's RDMA devices. These files run inside the VM only."""

import multiprocessing
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
        # Forked, so that torch is imported once: under emulation that takes a minute.
        fork = multiprocessing.get_context("fork")
        started.append(Cluster(world, reply_limit_s=REPLY_LIMIT_S, context=fork, **options))
        return started[-1]

    yield start
    for one in started:
        one.stop()
