from collections.abc import Iterator

import pytest

from tests.engine.lab import Lab


@pytest.fixture(scope="session")
def engine_lab() -> Iterator[Lab]:
    lab = Lab()
    yield lab
    lab.close()
