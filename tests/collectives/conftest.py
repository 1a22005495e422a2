"""Fabrics of fake ranks, and clusters of real ones."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from cluster import Cluster
from oracle import Opened

from tetraspark.collectives.fabric import Fabric, Faults
from tetraspark.collectives.fake import FakeTransport, run_together
from tetraspark.collectives.group import Group
from tetraspark.collectives.opening import Link, opening
from tetraspark.collectives.settings import Settings

SMALL = Settings(max_reduce_bytes=4096, max_gather_bytes=2048)


@pytest.fixture(scope="session", autouse=True)
def private_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Build into a folder of the test run, so that nothing cached before can be tested."""
    with pytest.MonkeyPatch.context() as patch:
        path = tmp_path_factory.mktemp("cache")
        patch.setenv("XDG_CACHE_HOME", str(path))
        yield path


@pytest.fixture
def open_fake() -> Callable[..., Opened]:
    """Open a group of fake ranks: `open_fake(world, seed=0, faults=None, **settings)`."""

    def open_groups(
        world: int, seed: int = 0, faults: Faults | None = None, **settings: object
    ) -> Opened:
        fabric = Fabric(world, seed, faults)
        told = replace(SMALL, **settings)  # type: ignore[arg-type]  # test-given fields
        steps = {
            rank: opening(rank, world, told, FakeTransport(fabric, rank)) for rank in range(world)
        }
        results = run_together(fabric, steps)
        groups = {rank: Group(link) for rank, link in results.items() if isinstance(link, Link)}
        return Opened(fabric, groups, results)

    return open_groups


@pytest.fixture
def cluster() -> Iterator[Callable[..., Cluster]]:
    """Start real ranks over shared memory; whatever happens, nothing of them stays behind."""
    started: list[Cluster] = []

    def start(world: int, **options: object) -> Cluster:
        started.append(Cluster(world, **options))  # type: ignore[arg-type]  # passed through
        return started[-1]

    yield start
    for one in started:
        one.stop()
    assert [name for one in started for name in one.leftovers()] == []
