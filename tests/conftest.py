import os

import pytest

# A worker of pytest-xdist has the terminal's width in its environment; tests choose their own.
os.environ.pop("COLUMNS", None)
NEED_THE_MACHINE = ("engine", "rdma", "timed")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what may not run beside other tests, before `-m` chooses; group what does.

    A file is a group, because its fixtures are. All tests on the four nodes are one, which comes
    first: it is the longest, and it waits more than it computes.
    """
    for item in items:
        if any(item.get_closest_marker(name) for name in NEED_THE_MACHINE):
            item.add_marker("alone")
        on_nodes = item.get_closest_marker("fleet") is not None
        item.add_marker(pytest.mark.xdist_group("fleet" if on_nodes else str(item.path)))
    items.sort(key=lambda item: item.get_closest_marker("fleet") is None)
