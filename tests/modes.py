"""Folders whose modes hold, also where the tests are run by root."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

NOBODY = 65534


@contextlib.contextmanager
def folder_of_mode(mode: int) -> Iterator[Path]:
    """Make a folder with one file, and give it a mode; `tmp_path` is closed to everybody else."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        folder = Path(name, "folder")
        folder.mkdir()
        (folder / "config.json").write_text("{}")
        folder.chmod(mode)
        yield folder
        folder.chmod(0o700)


@contextlib.contextmanager
def bound_by_modes() -> Iterator[None]:
    """Be a user for whom the modes of files hold, meanwhile."""
    me = os.geteuid()
    os.seteuid(me or NOBODY)
    try:
        yield
    finally:
        os.seteuid(me)
