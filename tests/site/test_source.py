"""Reading a file: what is no regular file, or too large, is refused before it is read."""

import os
from pathlib import Path

import pytest

from tetraspark.errors import UsageError
from tetraspark.site.source import LARGEST_FILE, read_bytes, read_source


def refusal(path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        read_source(path)
    assert caught.value.exit_code == 2
    (problem,) = caught.value.problems
    assert problem.where == str(path) and problem.fix
    return str(problem)


def test_a_device_never_ends_and_is_not_read() -> None:
    assert "a device or socket; wanted: a regular file" in refusal(Path("/dev/zero"))


def test_a_pipe_without_a_writer_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "a pipe; wanted: a regular file" in refusal(tmp_path / "pipe")


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    large = tmp_path / "large.toml"
    large.write_bytes(b"#" * LARGEST_FILE)
    assert len(read_bytes(large)) == LARGEST_FILE
    os.truncate(large, 1 << 40)
    assert f"{1 << 40} bytes; wanted: a file of at most {LARGEST_FILE}" in refusal(large)


def test_the_root_folder_is_written_with_one_slash() -> None:
    assert refusal(Path("/")).endswith("name the file in it: /NAME")
