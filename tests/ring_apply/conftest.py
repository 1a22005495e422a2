from collections.abc import Iterator

import pytest

from tests.ring.namespace_ring import require_ring
from tests.ring_apply.machines import Machines, plan_of
from tests.ring_apply.one_node import OneNode
from tetraspark.ring.plan import RingPlan


@pytest.fixture(scope="session")
def plan() -> RingPlan:
    """A plan for the four machines."""
    return plan_of()


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """Four machines for the whole session."""
    require_ring()
    machines = Machines(tmp_path_factory.mktemp("marker"))
    try:
        yield machines
    finally:
        machines.close()


@pytest.fixture
def machines(running: Machines, plan: RingPlan) -> Machines:
    """The machines with their addresses, and nothing of the plan."""
    running.reset(plan)
    return running


@pytest.fixture
def node(machines: Machines, plan: RingPlan) -> OneNode:
    """One of the machines."""
    return OneNode(machines, plan)
