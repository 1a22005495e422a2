"""Compiled kernels are kept: found again, made again where a file is not what was written."""

from pathlib import Path

import pytest

from tetraspark.collectives import cuda_images
from tetraspark.collectives.cuda_images import image, image_path

SOURCE = 'extern "C" __global__ void nothing(int x) {}'


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def forbid(_source: str, _capability: int) -> bytes:
    raise AssertionError("compiled a second time")


def test_a_second_call_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    made = image(SOURCE, 90)
    assert made[:4] == b"\x7fELF"
    monkeypatch.setattr(cuda_images, "compile_source", forbid)
    assert image(SOURCE, 90) == made


def test_source_and_gpu_have_images_of_their_own() -> None:
    paths = {image_path(SOURCE, 90), image_path(SOURCE, 121), image_path(SOURCE + " ", 90)}
    assert len(paths) == 3


def test_a_changed_file_is_made_again() -> None:
    made, path = image(SOURCE, 90), image_path(SOURCE, 90)
    path.write_bytes(b"something else")
    assert image(SOURCE, 90) == made


def test_a_file_that_others_may_write_is_made_again() -> None:
    made, path = image(SOURCE, 90), image_path(SOURCE, 90)
    path.chmod(0o666)
    assert image(SOURCE, 90) == made
    assert path.stat().st_mode & 0o077 == 0
