from pathlib import Path

import pytest

from tests.doctor.stand import Stand, site


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of the test's own, empty."""
    monkeypatch.setenv("TETRASPARK_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def stand(tmp_path: Path) -> Stand:
    """Four Sparks that are well."""
    return Stand(site(tmp_path))
