import os
from collections.abc import Iterator

import pytest

from tests.fleet.nodes.fleet import Fleet
from tests.fleet.nodes.requirements import require_fleet


@pytest.fixture(scope="session")
def running_fleet() -> Iterator[Fleet]:
    """Four nodes for the whole session."""
    require_fleet()
    fleet = Fleet()
    try:
        yield fleet
    finally:
        fleet.close()


@pytest.fixture
def fleet(running_fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    """The nodes, whole again after each test, with their `ssh` first in PATH."""
    monkeypatch.setenv("PATH", f"{running_fleet.bin}:{os.environ['PATH']}")
    yield running_fleet
    running_fleet.heal()
