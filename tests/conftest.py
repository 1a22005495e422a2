import os

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

# A worker of pytest-xdist has the terminal's width in its environment; tests choose their own.
os.environ.pop("COLUMNS", None)
NEED_THE_MACHINE = ("engine", "rdma", "timed")
ON_NODES = "tests/fleet/"


class NodesTogether(LoadFileScheduling):
    """Gives a worker whole files, and one worker all files of tests on the four nodes."""

    def _split_scope(self, nodeid: str) -> str:
        return ON_NODES if nodeid.startswith(ON_NODES) else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling:
    """Schedule as above. Groups (`--dist loadgroup`) are not told to pytest 9 by xdist 3.8."""
    return NodesTogether(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what may not run beside other tests, before `-m` chooses.

    The tests on the four nodes come first: they take longest, waiting more than computing.
    """
    for item in items:
        if any(item.get_closest_marker(name) for name in NEED_THE_MACHINE):
            item.add_marker("alone")
    items.sort(key=lambda item: not item.nodeid.startswith(ON_NODES))
