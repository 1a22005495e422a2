"""Fabrics of fake ranks, and clusters of real ones."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.collectives.cluster import Cluster
from tests.collectives.fakes import Opened, open_on

settings.register_profile("unhurried", deadline=None)  # a loaded machine is no fault
settings.load_profile("unhurried")


@pytest.fixture(scope="session", autouse=True)
def private_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Build into a folder of the test run, so that nothing cached before can be tested."""
    with pytest.MonkeyPatch.context() as patch:
        path = tmp_path_factory.mktemp("cache")
        patch.setenv("XDG_CACHE_HOME", str(path))
        yield path


@pytest.fixture
def open_fake() -> Callable[..., Opened]:
    """Return `open_on`."""
    return open_on


@pytest.fixture
def cluster() -> Iterator[Callable[..., Cluster]]:
    """Start real ranks over shared memory; whatever happens, nothing of them stays behind."""
    started: list[Cluster] = []

    def start(world: int, **options: Any) -> Cluster:
        started.append(Cluster(world, **options))
        return started[-1]

    yield start
    for one in started:
        one.stop()
    assert [name for one in started for name in one.leftovers()] == []
