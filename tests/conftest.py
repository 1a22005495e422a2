import os

import pytest

# A worker of pytest-xdist has the terminal's width in its environment; tests choose their own.
os.environ.pop("COLUMNS", None)
NEED_THE_MACHINE = ("engine", "rdma", "fleet", "timed")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what may not run beside other tests, before `-m` chooses."""
    for item in items:
        if any(item.get_closest_marker(name) for name in NEED_THE_MACHINE):
            item.add_marker("alone")
