"""A checkpoint, and a folder in memory."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engram.checkpoint import Made, make_checkpoint


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder in memory: a pack waits for its disk a dozen times, and these tests pack often."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        yield Path(name)


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return make_checkpoint(tmp_path / "model")
